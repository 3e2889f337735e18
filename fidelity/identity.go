package fidelity

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// seed makes hashes of values that one process compares.
var seed = maphash.MakeSeed()

// describe names a record for a person.
func describe(k tape.Kind) string {
	name := k.Name()
	switch k := k.(type) {
	case *tape.ClockRead:
		return fmt.Sprintf("%s %s %d ms", name, k.Source, k.ValueMS)
	case *tape.ClockSleep:
		return fmt.Sprintf("%s %d ms", name, k.DurationMS)
	case *tape.LLMCall:
		if k.Method == "" && k.URL == "" { // another producer's
			return name + " request " + k.RequestDigest.Short()
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", name, k.Method, k.URL, k.Model))
	case *tape.HTTPExchange:
		return fmt.Sprintf("%s %s %s", name, k.Method, k.URL)
	case *tape.ProcessSpawn:
		return name + " " + visible.Command(append([]string{k.Program}, k.Args...))
	case *tape.MCPJSONRPC:
		return spaced(name, k.Server, k.Method, subjectOfCall(k))
	case *tape.MCPOpen:
		return spaced(name, k.Server)
	case *tape.MCPText:
		return spaced(name, k.Server, k.From)
	case *tape.MCPClose:
		return spaced(name, k.Server)
	case *tape.WSOpen:
		return name + " " + k.URL
	case *tape.WSMessage:
		return spaced(name, k.Direction, typeOfMessage(k))
	case *tape.WSClose:
		return fmt.Sprintf("%s %d", name, k.Code)
	case *tape.TLSRefused:
		return fmt.Sprintf("%s %s port %d", name, k.Host, k.Port)
	case *tape.NetRefused:
		if strings.HasPrefix(k.Addr, "/") {
			return name + " " + k.Addr
		}
		return fmt.Sprintf("%s %s port %d", name, k.Addr, k.Port)
	case *tape.NameLookup:
		return fmt.Sprintf("%s %s %s", name, k.Host, k.Type)
	case *tape.DirList:
		return name + " " + k.Path
	case *tape.EnvRead:
		return name + " " + k.VarName
	case *tape.FileStat:
		return name + " " + k.Path
	case *tape.PolicyVerdict:
		return name + " " + k.Tool
	}
	if f := tape.FileOf(k); f != nil {
		return name + " " + shownPath(f)
	}
	return name
}

// shownPath is a path with what stands there, where that is no file.
func shownPath(f *tape.File) string {
	switch {
	case !f.IsPlace():
		return f.Path
	case strings.HasPrefix(f.Mode, "04"):
		return f.Path + "/"
	}
	return f.Path + " (FIFO)"
}

// identity says which thing a record is about, so that two tapes can be aligned on it: a hash that holds within this process.
// Records of one identity may still differ in what came of it; every field is compared after they were paired.
func (d *differ) identity(k tape.Kind) uint64 {
	var h hasher
	h.SetSeed(seed)
	h.text(k.Name())
	switch k := k.(type) {
	case *tape.ClockRead:
		h.text(k.Source)
		h.number(uint64(k.ValueMS))
	case *tape.ClockSleep:
		h.number(uint64(k.DurationMS))
	case *tape.LLMCall:
		h.text(k.Provider, k.Endpoint, k.Model)
		h.digest(k.ParamsDigest, k.RequestDigest)
	case *tape.HTTPExchange:
		h.text(k.Method, d.masked(k.URL))
		h.digest(k.RequestDigest)
	case *tape.ProcessSpawn:
		h.text(d.masked(k.Program))
		for _, a := range k.Args {
			h.text(d.masked(a))
		}
	case *tape.MCPJSONRPC:
		d.identifyCall(&h, k)
	case *tape.MCPOpen, *tape.MCPClose: // one of each in a lane
	case *tape.MCPText:
		h.text(k.From)
		d.identifyContent(&h, k.Payload)
	case *tape.WSMessage:
		h.text(k.Direction)
		d.identifyContent(&h, k.Payload)
	case *tape.PolicyVerdict:
		h.text(k.Tool)
		h.digest(k.ParamsDigest)
	case *tape.RandomRead:
		h.number(uint64(k.Length))
	case *tape.Unknown:
		h.Write(k.JSON)
	default:
		if f := tape.FileOf(k); f != nil {
			h.text(f.Path)
		} else {
			h.text(describe(k))
		}
	}
	return h.Sum64()
}

// identifyCall hashes which message to a tool server a record is about: between lanes by what compares of it, whatever the
// server calls itself.
func (d *differ) identifyCall(h *hasher, k *tape.MCPJSONRPC) {
	if !d.lanes {
		h.text(k.Server)
	}
	h.text(k.Method, fromOf(k))
	if d.lanes && !k.ParamsDigest.IsZero() {
		h.digest(k.ParamsDigest)
	} else {
		h.digest(k.RequestDigest)
	}
}

// identifyContent hashes what a message holds, masked where it stands in its record.
func (d *differ) identifyContent(h *hasher, p *tape.Payload) {
	if d.lanes && inRecord(p) {
		h.text(d.masked(p.Text))
	} else {
		h.digest(hashOf(p))
	}
}

// A hasher hashes fields, so that where one ends counts.
type hasher struct{ maphash.Hash }

func (h *hasher) text(fields ...string) {
	for _, s := range fields {
		h.number(uint64(len(s)))
		h.WriteString(s)
	}
}

func (h *hasher) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

func (h *hasher) digest(ds ...cas.Digest) {
	for i := range ds {
		h.Write(ds[i][:])
	}
}

// likely is a weaker identity: a record that stands alone on one side may have become one of the same likely identity that
// stands alone in the same place on the other.
func likely(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.HTTPExchange:
		url, _, _ := strings.Cut(k.URL, "?")
		return k.Name() + " " + k.Method + " " + url
	case *tape.ProcessSpawn:
		return k.Name() + " " + path.Base(k.Program)
	case *tape.MCPJSONRPC:
		return k.Name() + " " + fromOf(k) + " " + k.Method
	case *tape.MCPText:
		return k.Name() + " " + k.From
	case *tape.WSMessage:
		return k.Name() + " " + k.Direction
	case *tape.FileRead, *tape.FileWrite, *tape.FileDelete, *tape.DirList, *tape.EnvRead, *tape.FileStat:
		return describe(k)
	}
	return k.Name()
}
