package fidelity

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// seed makes hashes of values that one process compares.
var seed = maphash.MakeSeed()

// identity says which thing a record is about, so that two tapes can be aligned on it: a hash that holds within this process.
// Records of one identity may still differ in what came of it; every field is compared after they were paired.
func identity(d *differ, k tape.Kind) uint64 {
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
		identifyCall(d, &h, k)
	case *tape.MCPOpen, *tape.MCPClose: // one of each in a lane
	case *tape.MCPText:
		h.text(k.From)
		identifyContent(d, &h, k.Payload)
	case *tape.WSMessage:
		h.text(k.Direction)
		identifyContent(d, &h, k.Payload)
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
func identifyCall(d *differ, h *hasher, k *tape.MCPJSONRPC) {
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
func identifyContent(d *differ, h *hasher, p *tape.Payload) {
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
