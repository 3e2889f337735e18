package fidelity

import (
	"hash/maphash"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// seed makes hashes of values that one process compares.
var seed = maphash.MakeSeed()

// identity says which thing a record is about, so that two tapes can be aligned on it: a hash that holds within this process.
// Records of one identity may still differ in what came of it; every field is compared after they were paired.
func identity(d *differ, k tape.Kind) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	put(&h, k.Name())
	switch k := k.(type) {
	case *tape.ClockRead:
		put(&h, k.Source)
		put(&h, k.ValueMS)
	case *tape.ClockSleep:
		put(&h, k.DurationMS)
	case *tape.LLMCall:
		put(&h, k.Provider, k.Endpoint, k.Model)
		put(&h, k.ParamsDigest, k.RequestDigest)
	case *tape.HTTPExchange:
		put(&h, k.Method, d.masked(k.URL))
		put(&h, k.RequestDigest)
	case *tape.ProcessSpawn:
		put(&h, d.masked(k.Program))
		for _, a := range k.Args {
			put(&h, d.masked(a))
		}
	case *tape.MCPJSONRPC:
		identifyCall(d, &h, k)
	case *tape.MCPOpen, *tape.MCPClose: // one of each in a lane
	case *tape.MCPText:
		put(&h, k.From)
		identifyContent(d, &h, k.Payload)
	case *tape.WSMessage:
		put(&h, k.Direction)
		identifyContent(d, &h, k.Payload)
	case *tape.PolicyVerdict:
		put(&h, k.Tool)
		put(&h, k.ParamsDigest)
	case *tape.RandomRead:
		put(&h, k.Length)
	case *tape.Unknown:
		h.Write(k.JSON)
	default:
		if f := tape.FileOf(k); f != nil {
			put(&h, f.Path)
		} else {
			put(&h, describe(k))
		}
	}
	return h.Sum64()
}

// identifyCall hashes which message to a tool server a record is about: between lanes by what compares of it, whatever the
// server calls itself.
func identifyCall(d *differ, h *maphash.Hash, k *tape.MCPJSONRPC) {
	if !d.lanes {
		put(h, k.Server)
	}
	put(h, k.Method, fromOf(k))
	if d.lanes && !k.ParamsDigest.IsZero() {
		put(h, k.ParamsDigest)
	} else {
		put(h, k.RequestDigest)
	}
}

// identifyContent hashes what a message holds, masked where it stands in its record.
func identifyContent(d *differ, h *maphash.Hash, p *tape.Payload) {
	if d.lanes && inRecord(p) {
		put(h, d.masked(p.Text))
	} else {
		put(h, hashOf(p))
	}
}

// put hashes values, so that where one ends counts.
func put[T comparable](h *maphash.Hash, values ...T) {
	for _, v := range values {
		maphash.WriteComparable(h, v)
	}
}
