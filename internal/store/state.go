package store

import (
	"hash/crc32"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// A state is a run after some of its entries. The zero state is a run that does not exist.
type state struct {
	head    *head // nil: no run
	status  runtrace.Status
	turns   int
	bytes   int64  // of its lines
	crc     uint32 // CRC-32C of them
	endedAt string
}

// A head is what stays as it was at a run's start.
type head struct {
	id        runtrace.ID
	intent    string
	startedAt string
}

func (s *state) exists() bool { return s.head != nil }
func (s *state) open() bool   { return s.head != nil && s.status == runtrace.InProgress }

// records counts its lines.
func (s *state) records() int {
	switch {
	case !s.exists():
		return 0
	case s.open():
		return 1 + s.turns
	}
	return 2 + s.turns
}

// of reports whether it is this run.
func (s *state) of(id runtrace.ID) bool { return s.head != nil && s.head.id == id }

func (s *state) summary() Summary {
	return Summary{ID: s.head.id, Intent: s.head.intent, StartedAt: s.head.startedAt, EndedAt: s.endedAt,
		Status: s.status, Turns: s.turns}
}

// grown is the state with more lines.
func (s state) grown(lines []byte, turns int) state {
	s.bytes += int64(len(lines))
	s.crc = crc32.Update(s.crc, castagnoli, lines)
	s.turns += turns
	return s
}

// begun is the state of a run that has its first line.
func begun(s *runtrace.Started, line []byte) state {
	h := &head{id: s.ID(), intent: runtrace.Truncate(s.Intent), startedAt: s.StartedAt}
	return state{head: h, status: runtrace.InProgress}.grown(line, 0)
}

// ended is the state of a run that has its last line.
func (s state) ended(e *runtrace.Ended, line []byte) state {
	s.status, s.endedAt = e.Status, e.EndedAt
	return s.grown(line, 0)
}

// A crcWriter adds what is written to a checksum.
type crcWriter struct{ crc uint32 }

func (w *crcWriter) Write(b []byte) (int, error) {
	w.crc = crc32.Update(w.crc, castagnoli, b)
	return len(b), nil
}
