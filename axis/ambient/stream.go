package ambient

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// MaxTimes bounds the times of one process, in bytes: some ten million reads. What it reads beyond that is not kept.
const MaxTimes = 64 << 20

// A Log is the recorded times of one run. The zero value is ready.
type Log struct{ answered atomic.Uint64 }

// Answered is told of the exchange of this arrival before its answer reaches the program.
func (l *Log) Answered(arrival uint64) { l.answered.Store(arrival) }

// Stream begins the times of a process, which from tells; nil is the kernel's wall time.
func (l *Log) Stream(from Timer) *Stream {
	if from == nil {
		from = kernel{wall}
	}
	return &Stream{Timer: from, log: l, marked: l.answered.Load()}
}

// A Timer tells the wall time.
type Timer interface {
	// Now reads it, in ns since 1970.
	Now() int64
	// Behind is by how many ns Now lies behind the kernel's wall time, without reading it.
	Behind() int64
}

// Ticks is the kernel's monotonic clock.
func Ticks() Timer { return kernel{ticks} }

type kernel struct{ read func() int64 }

func (k kernel) Now() int64  { return k.read() }
func (kernel) Behind() int64 { return 0 }

func wall() int64 { return time.Now().UnixNano() }

// A Stream is the times that one process reads, as they are kept.
type Stream struct {
	Timer
	log *Log

	mu     sync.Mutex
	times  []byte
	last   int64
	marked uint64 // the answer that times tell of
	lost   int
}

// Now reads the wall time, in ns since 1970.
func (s *Stream) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Timer.Now()
	if len(s.times) > MaxTimes-2*binary.MaxVarintLen64 {
		s.lost++
		return now
	}
	if a := s.log.answered.Load(); a != s.marked {
		s.marked = a
		s.times = binary.AppendUvarint(s.times, a<<1|1)
	}
	s.times = binary.AppendUvarint(s.times, zigzag(now-s.last)<<1)
	s.last = now
	return now
}

// Times is what was read so far, and how many reads found no room.
func (s *Stream) Times() (times []byte, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times, s.lost
}

func zigzag(v int64) uint64   { return uint64(v<<1 ^ v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
