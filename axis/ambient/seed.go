package ambient

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"sync"
)

// A Seed makes the random bytes of one run.
type Seed [32]byte

// NewSeed returns the seed of the recording called id in the project of key.
func NewSeed(key []byte, id string) (s Seed) {
	copy(s[:], mac(key, []byte("tapedeck: the seed of a run\x00"+id)))
	return s
}

// ErrSeed is returned for a text that is no Seed's.
var ErrSeed = errors.New("ambient: no seed: 64 hex digits and a newline were expected")

// MarshalText is 64 hex digits and a newline.
func (s *Seed) MarshalText() ([]byte, error) { return append(hex.AppendEncode(nil, s[:]), '\n'), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Seed) UnmarshalText(text []byte) error {
	digits, ok := bytes.CutSuffix(text, []byte("\n"))
	b, err := hex.AppendDecode(nil, digits)
	if !ok || err != nil || len(b) != len(s) {
		return ErrSeed
	}
	copy(s[:], b)
	return nil
}

// Device returns the random bytes of a device that process n opens, from the first one on: its kth.
func (s *Seed) Device(n, k uint64) *Random { return s.source(n, k) }

// Draws returns the random bytes that process n asks its kernel for.
func (s *Seed) Draws(n uint64) *Draws {
	return &Draws{seed: s, process: n, from: make(map[draw]*Random)}
}

func (s *Seed) source(of ...uint64) *Random {
	var name []byte
	for _, v := range of {
		name = binary.BigEndian.AppendUint64(name, v)
	}
	var key [32]byte
	copy(key[:], mac(s[:], name))
	return &Random{from: rand.NewChaCha8(key)}
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// A Random is random bytes in their order.
type Random struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

// Fill fills b.
func (r *Random) Fill(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from.Read(b)
}

// A Draws is the random bytes that one process asks for. What it asks for at one place, in one length, is in an order of its own: a key of
// a map that another thread makes meanwhile changes no name.
type Draws struct {
	seed    *Seed
	process uint64

	mu   sync.Mutex
	from map[draw]*Random
}

type draw struct{ place, size int }

// maxDraws bounds the orders of one process. What is asked for beyond them has one in common.
const maxDraws = 4096

// Fill fills b for a place that Places has numbered.
func (d *Draws) Fill(place int, b []byte) { d.of(draw{place, len(b)}).Fill(b) }

func (d *Draws) of(key draw) *Random {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.from[key]
	if r == nil {
		if len(d.from) >= maxDraws {
			key = draw{}
		}
		if r = d.from[key]; r == nil {
			r = d.seed.source(d.process, 0, uint64(key.place), uint64(key.size))
			d.from[key] = r
		}
	}
	return r
}

// A Places numbers where in its program a process asks for time and random bytes, from 1 on, in the order in which it first asks there.
// 0 is for what is not known. On a replay a place has the number that it had. The zero value is ready.
type Places struct {
	// Process has those of the process that forked this one, or whose thread this is, which runs the same build; nil for none. It is set before use.
	Process *Places

	mu      sync.Mutex
	list    []uint64
	numbers map[uint64]int

	recorded int // of list, how many a recording has
	taken    []bool
	free     int // of taken, how many are true from the first on, at least
	asked    bool
	rebuilt  bool // the program is another build: its places are others, and are the recorded ones in their order
	untimed  bool // the recording knows of no time where it was read
	unplaced bool // nor of anything else
}

// MaxPlaces bounds the places of one process that are told apart. Those beyond it are not known.
const MaxPlaces = 1 << 16

// unseen is what some recordings call a place of which nothing could be told: the digest (FNV-1a) of no caller.
const unseen = 0xcbf29ce484222325

// Number is the number of a place, which is told by a digest of how the program came there; 0 is none, and all of them on a replay of a
// recording that knows of none.
func (p *Places) Number(place uint64) int {
	if place == 0 || p.unplaced {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.numbers[place]
	if !p.asked {
		p.asked, p.rebuilt = true, !ok && p.recorded > 0 && !p.Process.knows()
	}
	if !ok {
		n = p.add(place)
	}
	if 0 < n && n <= p.recorded {
		p.taken[n-1] = true
	}
	return n
}

// knows reports whether the program is told to be the recorded build: what a thread asks for first may be what then another one did, which
// came to it first, and says nothing of the build.
func (p *Places) knows() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked && p.recorded > 0 && !p.rebuilt
}

// TimeNumber is Number of a place where the time is read: 0 for all of them on a replay of a recording that does not know where.
func (p *Places) TimeNumber(place uint64) int {
	if p.untimed {
		return 0
	}
	return p.Number(place)
}

// add gives a place that is new the next number: that of a recorded place which nobody has, where the program is another build.
func (p *Places) add(place uint64) int {
	if p.numbers == nil {
		p.numbers = make(map[uint64]int)
	}
	n := len(p.list)
	if free := p.nextFree(); p.rebuilt && free < len(p.taken) {
		n = free
		delete(p.numbers, p.list[n])
	} else if n >= MaxPlaces {
		return 0
	} else {
		p.list = append(p.list, 0)
	}
	p.list[n] = place
	p.numbers[place] = n + 1
	return n + 1
}

// nextFree is the first recorded place that nobody has: none is ever given back.
func (p *Places) nextFree() int {
	for p.free < len(p.taken) && p.taken[p.free] {
		p.free++
	}
	return p.free
}

// append appends what read reads.
func (p *Places) append(b []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	b = binary.AppendUvarint(b, uint64(len(p.list)))
	for _, place := range p.list {
		b = binary.LittleEndian.AppendUint64(b, place)
	}
	return b
}

// readPlaces reads recorded places, and returns what follows them.
func readPlaces(b []byte) (p *Places, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k)/8 {
		return nil, nil, ErrTimes
	}
	p = &Places{numbers: make(map[uint64]int), recorded: int(n), taken: make([]bool, n), unplaced: n == 0}
	for b = b[k:]; len(p.list) < int(n); b = b[8:] {
		place := binary.LittleEndian.Uint64(b)
		p.list = append(p.list, place)
		p.numbers[place] = len(p.list)
	}
	return p, b, nil
}
