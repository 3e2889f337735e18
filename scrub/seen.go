package scrub

import (
	"hash/maphash"
	"sync"
)

// Every request of a conversation holds the whole conversation so far. So Bytes remembers pieces of text in which nothing
// was found, by a hash of them, and passes them by when they come again.
const (
	pieceLen   = 4 << 10 // bytes
	maxPieces  = 8 << 10 // in each of two generations: less than 1 MiB of memory, for 32 MiB of text each
	leastSaved = pieceLen / 2
)

// A seen remembers the pieces of text in which one index found nothing. What was not met in the last maxPieces pieces or so
// is forgotten. The hash has a seed that is made for the process: nobody can make a text that is taken for another.
type seen struct {
	seed maphash.Seed

	mu          sync.Mutex // guards what follows
	now, before map[uint64]uint16
}

func newSeen() *seen {
	return &seen{seed: maphash.MakeSeed(), now: make(map[uint64]uint16)}
}

// key is of everything that the scan of a piece depends on: its bytes, those behind it that a matcher looks back to, where
// the ones end and the others begin, and whether it is of a stream of events. What else it depends on (the rules, the known
// values) is the index's own, and each index has a seen of its own.
func (s *seen) key(behind, piece []byte, streams bool) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	flags := byte(len(behind)) << 1 // at most lookBehind
	if streams {
		flags |= 1
	}
	_ = h.WriteByte(flags) // never fails (hash/maphash), nor do the others
	_, _ = h.Write(behind)
	_, _ = h.Write(piece)
	return h.Sum64()
}

// get returns how many bytes of a piece were decided, 0 where it is not known.
func (s *seen) get(key uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.now[key]
	if !ok {
		if n, ok = s.before[key]; ok {
			s.put(key, n)
		}
	}
	return int(n)
}

func (s *seen) add(key uint64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, uint16(n))
}

// put is called with mu held.
func (s *seen) put(key uint64, n uint16) {
	if len(s.now) >= maxPieces {
		s.now, s.before = make(map[uint64]uint16), s.now
	}
	s.now[key] = n
}
