package process

import (
	"errors"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// MaskLimit is the longest stream, in bytes, whose digest is taken after masking, for which it is read into memory. The
// digest of a longer one is that of its scrubbed bytes: exact, but not blind to volatile facts.
const MaskLimit = 64 << 20

// A Stream keeps, scrubbed, what one standard stream carried. Write what passes, then Finish. It is safe for one writer
// and one finisher at once, for a stream that never ends is finished while its relay still waits for the next byte.
type Stream struct {
	store cas.Store
	mask  *masks.Masker

	mu    sync.Mutex
	shown *shown        // of a terminal; else nil
	clean *scrub.Writer // scrubs into spool
	spool *spool.Spool
	done  bool
	kept  *Kept // kept and err are what Finish returned, once done
	err   error
}

// Kept is what a finished Stream carried.
type Kept struct {
	Payload *tape.Payload
	Digest  cas.Digest // by which the streams of two runs compare
	Masked  bool       // false where the stream was longer than MaskLimit, so that Digest is the payload's hash
}

// NewStream returns a stream that keeps its bytes in store.
func NewStream(store cas.Store, s *scrub.Scrubber, m *masks.Masker) *Stream {
	sp := spool.New(store)
	return &Stream{store: store, mask: m, clean: s.Writer(sp), spool: sp}
}

// Write keeps p. After Finish it drops p. The error is the store's, and stays: what follows is not kept.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return len(p), nil
	}
	if s.shown != nil {
		return s.shown.write(s.clean, p)
	}
	return s.clean.Write(p)
}

// Finish ends the stream and returns what it carried, the same whenever it is called again. It waits for a Write that the
// store delays. The error is the store's; the stream is lost then.
func (s *Stream) Finish() (*Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.done = true
		s.kept, s.err = s.finish()
	}
	return s.kept, s.err
}

func (s *Stream) finish() (*Kept, error) {
	var failed error
	if s.shown != nil {
		failed = s.shown.flush(s.clean)
	}
	p, err := s.spool.Finish(errors.Join(failed, s.clean.Close()))
	if err != nil {
		return nil, err
	}
	if p.Len > MaskLimit {
		return &Kept{Payload: p, Digest: p.Hash}, nil
	}
	b, err := p.Bytes(s.store)
	if err != nil {
		return nil, err
	}
	return &Kept{Payload: p, Digest: s.mask.Digest(b), Masked: true}, nil
}
