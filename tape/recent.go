package tape

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A recent holds inline payloads that were made lately: what runs in a loop reads the same variable, lists the same directory and gets
// the same answer again. It may be used by several goroutines at once, and holds 256 KiB at most.
type recent struct {
	seed  maphash.Seed
	slots [64]atomic.Pointer[Payload] // each payload in the one that the hash of its bytes says
}

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// payload is MakePayload, or what that returned for the same bytes before.
func (m *recent) payload(s cas.Store, b []byte) (*Payload, error) {
	if len(b) > InlineLimit {
		return MakePayload(s, b)
	}
	slot := &m.slots[maphash.Bytes(m.seed, b)%uint64(len(m.slots))]
	if p := slot.Load(); p != nil && p.Text == string(b) {
		return p, nil
	}
	p, err := MakePayload(s, b)
	if err == nil && p.Inline {
		slot.Store(p)
	}
	return p, err
}
