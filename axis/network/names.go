package network

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"net/netip"
	"strings"
	"sync"
)

// synthetic is the range that Names gives addresses from: RFC 2544's, which no host on the Internet has. The first 256
// addresses are never given out; a jail may use them for itself.
var synthetic = netip.MustParsePrefix("198.18.0.0/15")

const (
	syntheticFirst = 256
	syntheticCount = 1<<17 - syntheticFirst - 1 // without the broadcast address
	maxNames       = syntheticCount / 2         // a table that is half full still probes quickly
)

// errNamesFull is returned by Names.Addr once maxNames names have an address.
var errNamesFull = errors.New("too many names")

// Names gives each name a synthetic address, and finds the name of an address again. An address follows from the hash of
// its name, so that a name has the same one while recording and on replay; only names whose hashes collide depend on the
// order of asking. The zero Names is ready to use.
type Names struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
}

// Addr returns the address of name, which is taken in lower case and without a final dot. "localhost" and names below
// it have 127.0.0.1. The error is that of a table that is full.
func (n *Names) Addr(name string) (netip.Addr, error) {
	name = cleanName(name)
	if isLocalhost(name) {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.byName[name]; ok {
		return a, nil
	}
	if len(n.byName) >= maxNames {
		return netip.Addr{}, errNamesFull
	}
	if n.byName == nil {
		n.byName, n.byAddr = make(map[string]netip.Addr), make(map[netip.Addr]string)
	}
	a := n.free(name)
	n.byName[name], n.byAddr[a] = a, name
	return a, nil
}

// free finds the first free address from the one that name hashes to. The caller holds mu; the table is not full.
func (n *Names) free(name string) netip.Addr {
	h := fnv.New32a()
	h.Write([]byte(name))
	for slot := h.Sum32() % syntheticCount; ; slot = (slot + 1) % syntheticCount {
		a := syntheticAddr(slot)
		if _, taken := n.byAddr[a]; !taken {
			return a
		}
	}
}

func syntheticAddr(slot uint32) netip.Addr {
	base := synthetic.Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+syntheticFirst+slot)
	return netip.AddrFrom4(b)
}

// Name returns the name that an address was given out for.
func (n *Names) Name(addr netip.Addr) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.byAddr[addr.Unmap()]
	return name, ok
}

func cleanName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// validName reports whether name, cleaned, could be a host's: letters, digits, "-" and "_" in dotted labels.
func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
