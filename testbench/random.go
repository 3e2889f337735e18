package testbench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// MaxRandom is the most bytes that one reading of Random gives.
const MaxRandom = 16 << 20

// Random gives random numbers that are the same in every run of one seed (ChaCha8), each reading on the tape as a random_read.
// It is an io.Reader. It may be used by several goroutines at once.
type Random struct {
	*core

	mu   sync.Mutex // held while a reading is recorded: readings stand in the order in which they were drawn
	src  *rand.ChaCha8
	rand *rand.Rand // of src
}

func newRandom(b *core) *Random {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], b.conf.Seed)
	src := rand.NewChaCha8(key)
	return &Random{core: b, src: src, rand: rand.New(src)}
}

// Int returns a number from low to high, both of them possible. On the tape it stands as 8 bytes, big endian, in two's complement.
func (r *Random) Int(low, high int64) (int64, error) {
	if low > high {
		return 0, fmt.Errorf("testbench: random number from %d to %d: the first must not be above the second", low, high)
	}
	var p [8]byte
	if err := r.give(p[:], func() { binary.BigEndian.PutUint64(p[:], uint64(r.between(low, high))) }); err != nil {
		return 0, err
	}
	n := int64(binary.BigEndian.Uint64(p[:]))
	if n < low || n > high {
		return 0, fmt.Errorf("testbench: random number from %d to %d: the tape holds %d for this reading", low, high, n)
	}
	return n, nil
}

// between is called under mu.
func (r *Random) between(low, high int64) int64 {
	span := uint64(high) - uint64(low)
	if span == math.MaxUint64 {
		return int64(r.src.Uint64())
	}
	return int64(uint64(low) + r.rand.Uint64N(span+1))
}

// Bytes returns n random bytes; n is from 0 to MaxRandom.
func (r *Random) Bytes(n int) ([]byte, error) {
	if n < 0 || n > MaxRandom {
		return nil, fmt.Errorf("testbench: %d random bytes: want from 0 to %d", n, MaxRandom)
	}
	p := make([]byte, n)
	_, err := r.Read(p)
	return p, err
}

// Read fills p, as one reading for each MaxRandom bytes of it.
func (r *Random) Read(p []byte) (int, error) {
	for at := 0; at < len(p) || at == 0; at += MaxRandom {
		part := p[at:min(len(p), at+MaxRandom)]
		err := r.give(part, func() { _, _ = r.src.Read(part) }) // which never fails
		if err != nil {
			return at, err
		}
	}
	return len(p), nil
}

// give fills p by one reading: what draw puts there, or what the tape of a replay has.
func (r *Random) give(p []byte, draw func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	taped := false
	if r.from != nil {
		var err error
		if taped, err = r.randomTaped(p); err != nil {
			return err
		}
	}
	if !taped {
		draw()
	}
	if r.rec == nil {
		return nil
	}
	payload, err := r.rec.Payload(p)
	if err != nil {
		return err
	}
	return r.rec.Record(&tape.RandomRead{Length: int64(len(p)), Payload: payload})
}

// latencyField is how long the answer of a model took, in ms.
func latencyField(extra []tape.Field) int64 {
	ms, err := strconv.ParseInt(string(tape.FieldValue(extra, fixture.LatencyKey)), 10, 64)
	if err != nil {
		return 0
	}
	return ms
}

// bareMasker masks what differs from run to run and says nothing, as every bare tape has it. Making one takes longer than a small
// run, and it keeps nothing of a run: benches share it, as long as the directories are the same that it masks.
func bareMasker() (*masks.Masker, error) {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	key := [...]string{home, os.TempDir(), dir}
	if m, ok := maskers.Load(key); ok {
		return m.(*masks.Masker), nil
	}
	m, err := bare.NewMasker(nil)
	if err == nil {
		maskers.Store(key, m)
	}
	return m, err
}

var maskers sync.Map // of [home, temporary, working directory] to *masks.Masker

// An environment gives the variables of a run.
type environment struct {
	*core

	set map[string]string
}

// names are the variables that are set, sorted.
func (b *environment) names() []string {
	if b.from == nil {
		return sortedKeys(b.set)
	}
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	var names []string
	for name, queue := range b.from.env.reads {
		if name != anyName && len(queue) > 0 && queue[0] != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (b *environment) lookup(name string) (string, bool, error) {
	if err := b.watch.gate(); err != nil {
		return "", false, err
	}
	value, ok := b.set[name]
	if b.from != nil {
		var err error
		if value, ok, err = b.taped(name); err != nil {
			return "", false, err
		}
	}
	return value, ok, b.record(name, value, ok)
}

func (b *environment) record(name, value string, ok bool) error {
	if b.rec == nil {
		return nil
	}
	k := &tape.EnvRead{VarName: name}
	if ok {
		p, err := b.rec.Payload(b.secrets.variable(name, value))
		if err != nil {
			return err
		}
		k.Value = p
	}
	return b.rec.Record(k)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// envTape answers readings of the environment from a tape: by name, and of one name in recorded order; what was read last stands
// for whatever comes after it, for a variable does not change by being read. A tape of another producer answers by order alone.
type envTape struct {
	reads   map[string][]*tape.Payload // by name; nil for a variable that was not set
	foreign bool
}

// anyName is what all readings of a foreign tape are kept under: no variable has this name.
const anyName = ""

func (e *envTape) add(k *tape.EnvRead) {
	name := k.VarName
	if e.foreign {
		name = anyName
	}
	e.reads[name] = append(e.reads[name], k.Value)
}

// next takes the next reading of a variable; false where there is none.
func (e *envTape) next(name string) (*tape.Payload, bool) {
	if e.foreign {
		name = anyName
	}
	queue := e.reads[name]
	if len(queue) == 0 {
		return nil, false
	}
	if len(queue) > 1 || e.foreign {
		e.reads[name] = queue[1:]
	}
	return queue[0], true
}

// taped is lookup of a replay.
func (b *environment) taped(name string) (string, bool, error) {
	b.from.mu.Lock()
	p, ok := b.from.env.next(name)
	b.from.mu.Unlock()
	if !ok {
		err := &RefusedError{Axis: "environment", Asked: "the variable " + strconv.Quote(name) + " was not read when the tape was made",
			Next: "record the run again, or undo what reads it"}
		b.watch.refuse(err, func() tape.Kind { return &tape.EnvRead{VarName: name} })
		return "", false, err
	}
	if p == nil {
		return "", false, nil
	}
	value, err := p.Bytes(b.from.store)
	return string(value), err == nil, b.watch.see(err, nil)
}

// secrets take out of the tape what it may not hold. Placeholders are numbered by first appearance, so that runs with different
// secrets write the same bytes, and nobody needs a key.
type secrets struct {
	scrubber *scrub.Scrubber
	again    bool            // of a replay
	says     map[string]bool // of each variable of Config.Env: whether its name says that it holds a secret

	mu      sync.Mutex
	numbers *bare.Numbers
}

// newSecrets knows the secrets of a run: those that c names, and the keys of the host where a live call may send them.
func newSecrets(c *Config, live bool, from *recorded) *secrets {
	var env []string
	says := make(map[string]bool)
	for name, value := range c.Env {
		env = append(env, name+"="+value)
		says[name] = names.SaySecret(name)
	}
	if live {
		env = append(env, hostKeys()...)
	}
	if from != nil { // what it says is scrubbed already
		env = nil
	}
	s := &secrets{again: from != nil, says: says, scrubber: bare.NewScrubber(&scrub.Options{Env: env}), numbers: bare.NewNumbers(nil)}
	s.numbers.Twice(s.again)
	for _, name := range sortedKeys(c.Secrets) {
		s.scrubber.AddSecret(name, c.Secrets[name])
	}
	return s
}

// hostKeys are the variables of the host whose names say that they hold secrets.
func hostKeys() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !names.SaySecret(name)
	})
}

// placeholderBegin begins every placeholder of package scrub.
const placeholderBegin = "td_"

// clean is tape.RecorderOptions.Clean.
func (s *secrets) clean(b []byte) []byte {
	out, _ := s.scrubber.Bytes(b)
	if !bytes.Contains(out, []byte(placeholderBegin)) {
		return out
	}
	return s.number(out)
}

// form is what two texts have in common that differ in their secrets alone: placeholders are numbered anew in each, and no other
// text has other numbers for it.
func (s *secrets) form(b []byte) []byte {
	out, _ := s.scrubber.Bytes(b)
	return scrub.Renumber(out)
}

// number numbers the placeholders of b, which is not written to.
func (s *secrets) number(b []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers.Knows(s.scrubber.Counts())
	return s.numbers.Bytes(b)
}

// variable returns the value of a variable of the environment as the tape may hold it: a short secret is none elsewhere.
func (s *secrets) variable(name, value string) []byte {
	says, ok := s.says[name]
	if !ok {
		says = names.SaySecret(name)
	}
	if s.again || !says {
		return []byte(value)
	}
	v := s.scrubber.Env([]string{name + "=" + value})
	if len(v) == 0 || !v[0].Secret {
		return []byte(value)
	}
	return s.number([]byte(v[0].Value))
}
