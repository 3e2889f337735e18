package ambient

import (
	"encoding/binary"
	"sync"
	"time"
)

// MaxTimes bounds the times of one process, in bytes: some five million reads. What it reads beyond that is not kept.
const MaxTimes = 16 << 20

// A Heard is the answers that reached a process, or a thread with times of its own. The zero value is a process that has had none.
type Heard struct {
	process *Heard // whose thread this is; nil for a process

	mu       sync.Mutex // guards what follows
	arrivals []uint64   // of all answers, in the order in which they came
}

// Thread is a thread of the process: it hears its own answers, and the process hears them too, for it waits for its threads.
func (h *Heard) Thread() *Heard { return &Heard{process: h} }

// Answered is told of the exchange of this arrival before its answer is given.
func (h *Heard) Answered(arrival uint64) {
	h.mu.Lock()
	h.arrivals = append(h.arrivals, arrival)
	h.mu.Unlock()
	if h.process != nil {
		h.process.Answered(arrival)
	}
}

// since is what came after the first n answers.
func (h *Heard) since(n int) []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.arrivals[n:]
}

// Stream begins the times of whoever hears that, which from tells; nil is the kernel's wall time. places has numbered where it reads them.
func (h *Heard) Stream(from Timer, places *Places) *Stream {
	if from == nil {
		from = kernel{wall}
	}
	return &Stream{Timer: from, heard: h, places: places, marked: len(h.since(0))}
}

// A Timer tells the wall time.
type Timer interface {
	// Now reads it at a place that Places has numbered, in ns since 1970.
	Now(place int) int64
	// Behind is by how many ns Now lies behind the kernel's wall time, without reading it.
	Behind() int64
}

// Ticks is the kernel's monotonic clock.
func Ticks() Timer { return kernel{ticks} }

type kernel struct{ read func() int64 }

func (k kernel) Now(int) int64 { return k.read() }
func (kernel) Behind() int64   { return 0 }

func wall() int64 { return time.Now().UnixNano() }

// Kinds of tokens: their lowest bits.
const (
	tokenTime  = 0 // one bit
	tokenMark  = 1
	tokenPlace = 3
)

// A Stream is the times that one process reads, as they are kept.
type Stream struct {
	Timer
	heard  *Heard
	places *Places

	mu     sync.Mutex
	times  []byte
	last   int64
	place  int // of last
	marked int // how many answers times tell of
	lost   int
}

// Now reads the wall time at a place, in ns since 1970.
func (s *Stream) Now(place int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Timer.Now(place)
	if len(s.times) > MaxTimes-3*binary.MaxVarintLen64 {
		s.lost++
		return now
	}
	for _, arrival := range s.heard.since(s.marked) {
		if len(s.times) > MaxTimes-5*binary.MaxVarintLen64 {
			break // what is marked later is not waited for
		}
		s.marked++
		s.times = binary.AppendUvarint(s.times, arrival<<2|tokenMark)
	}
	if place != s.place {
		s.place = place
		s.times = binary.AppendUvarint(s.times, uint64(place)<<2|tokenPlace)
	}
	s.times = binary.AppendUvarint(s.times, zigzag(now-s.last)<<1|tokenTime)
	s.last = now
	return now
}

// Times is what was read so far, and how many reads found no room. It is nil where nothing was asked at all.
func (s *Stream) Times() (times []byte, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if times = s.places.append(nil); len(times) == 1 && len(s.times) == 0 {
		return nil, s.lost
	}
	return append(times, s.times...), s.lost
}

func zigzag(v int64) uint64   { return uint64(v<<1 ^ v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
