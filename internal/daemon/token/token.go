// Package token keeps the tokens of a daemon in files and finds them by the daemon's address.
//
// A daemon makes two tokens at each start, 32 random bytes each, in base64url without padding (43 characters): one for agents,
// one for the host role. Before it lets anybody in it puts them where their owner's other programs find them:
//
//	$XDG_RUNTIME_DIR (else the XDG config directory)/tapedeck/daemon-<address>/token
//	                                                                         /host-token
//
// the directory with mode 0700, the files with 0600, both owned by who runs the daemon; a directory that belongs to
// somebody else, or is a symbolic link, is refused on both sides. <address> is HOST-PORT for TCP, with localhost as 127.0.0.1,
// a wildcard as "any" (found under loopback addresses alone) and the colons of IPv6 as "_"; for a Unix socket it is the hash of its absolute path. A daemon that is
// reached in several ways leaves its tokens under each.
//
// Files are put in place whole (package durable). Those of a daemon that was killed are replaced by the next one on that
// address, which could not listen there if the first were alive. A clean stop removes the files, if they are still its own.
//
// Tokens are compared in constant time, whatever their lengths.
package token

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Size is how many random bytes a token has.
const Size = 32

// A Pair is the two tokens of a daemon.
type Pair struct {
	Agent string // lets an agent in
	Host  string // the host role, which reads everything
}

// New makes a pair.
func New() Pair { return Pair{Agent: random(), Host: random()} }

func random() string {
	var b [Size]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Equal compares a token with what somebody says it is, in time that depends on neither. An empty token equals nothing.
func Equal(token, said string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(said))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && token != ""
}

// Names of the files.
const (
	agentFile = "token"
	hostFile  = "host-token"
)

// A Kept pair is in files.
type Kept struct {
	pair Pair
	dirs []string
}

// Write puts a pair in files for each of the addresses at which the daemon is reached: a URL (ws://host:port, unix:PATH) or
// host:port. base is the directory in place of the XDG runtime one, "" for that.
func Write(base string, p Pair, addrs ...string) (*Kept, error) {
	k := &Kept{pair: p}
	for _, addr := range addrs {
		if err := k.add(base, addr); err != nil {
			k.Remove()
			return nil, fmt.Errorf("write the tokens for %s: %w", addr, err)
		}
	}
	return k, nil
}

func (k *Kept) add(base, addr string) error {
	dir, err := Dir(base, addr)
	if err != nil {
		return err
	}
	if err := private(dir); err != nil {
		return err
	}
	k.dirs = append(k.dirs, dir)
	if err := write(filepath.Join(dir, agentFile), k.pair.Agent); err != nil {
		return err
	}
	return write(filepath.Join(dir, hostFile), k.pair.Host)
}

// Remove removes the files that are still this pair's, and their directories.
func (k *Kept) Remove() {
	for _, dir := range k.dirs {
		removeIf(filepath.Join(dir, agentFile), k.pair.Agent)
		removeIf(filepath.Join(dir, hostFile), k.pair.Host)
		_ = os.Remove(dir) // stays where another daemon put its own
	}
}

func removeIf(file, content string) {
	if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == content {
		_ = os.Remove(file)
	}
}

// File returns where the token for an address is, or would be. host asks for that of the host role. Of several names that an
// address may have (localhost is 127.0.0.1 and ::1) it takes the first under which there is one.
func File(base, addr string, host bool) (string, error) {
	name := agentFile
	if host {
		name = hostFile
	}
	dirs, err := candidates(base, addr)
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if _, err := os.Lstat(file); err == nil {
			return file, nil
		}
	}
	return filepath.Join(dirs[0], name), nil
}

// Read returns the token for an address. The error wraps fs.ErrNotExist where there is none: no daemon was started there by
// this user, or it runs with --no-auth.
func Read(base, addr string, host bool) (string, error) {
	file, err := File(base, addr, host)
	if err != nil {
		return "", err
	}
	if err := owned(filepath.Dir(file)); err != nil {
		return "", fmt.Errorf("read the token of %s: %w", addr, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token of %s: %w", addr, err)
	}
	return strings.TrimSpace(string(b)), nil
}

func write(file, content string) error {
	return durable.WriteFile(file, []byte(content), nil) // no newline: not every client strips it
}

// Dir returns the directory of the tokens of the daemon that listens at addr.
func Dir(base, addr string) (string, error) {
	dirs, err := candidates(base, addr)
	if err != nil {
		return "", err
	}
	return dirs[0], nil
}

// candidates returns the directories in which a daemon at addr may have left its tokens, the likeliest first.
func candidates(base, addr string) ([]string, error) {
	names, err := names(addr)
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = filepath.Join(Base(), "tapedeck")
	}
	for i, name := range names {
		names[i] = filepath.Join(base, "daemon-"+name)
	}
	return names, nil
}

// Base returns the XDG runtime directory, else the config directory.
func Base() string {
	return cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), xdg.ConfigHome)
}

// names returns what an address is called in a directory's name.
func names(addr string) ([]string, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return socketName(path)
	}
	hostport := addr
	if strings.Contains(addr, "://") {
		u, err := url.Parse(addr)
		if err != nil {
			return nil, fmt.Errorf("the address of a daemon: %w", err)
		}
		hostport = u.Host
		if u.Port() == "" {
			hostport = net.JoinHostPort(u.Hostname(), map[string]string{"wss": "443", "https": "443"}[u.Scheme])
		}
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("the address of a daemon: want host:port, ws://host:port or unix:PATH, got %q", addr)
	}
	return tcpNames(strings.ToLower(host), cmp.Or(port, "80")), nil
}

func socketName(path string) ([]string, error) {
	path = strings.TrimPrefix(path, "//")
	full, err := filepath.Abs(path)
	if err != nil || path == "" {
		return nil, fmt.Errorf("the address of a daemon: want unix:PATH, got %q", "unix:"+path)
	}
	sum := sha256.Sum256([]byte(full))
	return []string{"socket-" + hex.EncodeToString(sum[:8])}, nil
}

// tcpNames names host and port in letters that every file system takes. A daemon of this machine that listens on every address is
// one of the candidates for an address of this machine alone: its token must not go to whoever listens elsewhere.
func tcpNames(host, port string) []string {
	hosts := []string{host}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "localhost":
		hosts = []string{"127.0.0.1", "::1", "any"}
	case host == "" || err == nil && ip.IsUnspecified():
		hosts = []string{"any", "127.0.0.1"}
	case err == nil:
		ip = ip.Unmap().WithZone("")
		hosts[0] = ip.String()
		if here(ip) {
			hosts = append(hosts, "any")
		}
	}
	for i, h := range hosts {
		hosts[i] = plain(h) + "-" + plain(port)
	}
	return hosts
}

// here reports whether an address is one of this machine.
func here(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == ip
	})
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, s)
}

// private makes a directory that only its owner can read, with those above it, and makes sure that it is one.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := owned(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// owned refuses a directory into which somebody else may have put a token.
func owned(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: remove it", dir)
	}
	return checkOwner(dir, info)
}
