package tape

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// RecorderOptions say how a Recorder stamps and keeps. Nil and zero work.
type RecorderOptions struct {
	// Store takes payloads that do not fit into a record; a memory store when nil. It is the store that makes a blob
	// durable before the record that names it: see cas.DirOptions.Sync.
	Store cas.Store
	// Now is the clock, in ms: the run's own (Unix epoch) and a monotonic one from the recording's beginning. It is called
	// under the recorder's lock. The default reads the wall clock, and the time since NewRecorder.
	Now func() (wallMS, monotonicMS int64)
	// Clean takes secrets out of everything that the recorder writes, before it is hashed: every payload that Recorder.Payload
	// makes, and every string of a record. It returns b itself where there is nothing to take out, never writes to b, does not
	// keep it, and may be called by several goroutines at once. What it leaves in a string of JSON must be JSON. Keys of JSON,
	// digests and payloads that were made elsewhere are not its, and nothing shorter than 7 bytes, for package scrub finds nothing
	// there. Nil takes nothing out.
	Clean func(b []byte) []byte
	// Bare leaves out the ordinal of records: that of a tape beside which nothing else stands in an order.
	Bare bool
	// Sync is called by Flush once the tape has been handed to the kernel: the fsync of its file, where every barrier must
	// outlive a loss of power. It may be called by several goroutines at once. Nil is none.
	Sync func() error
	// Failed is told of the first failure, once, by the goroutine that met it, before that has its error. It may ask the
	// recorder. Nil is nobody: whoever records alone is to look at the errors.
	Failed func(error)
}

// A Recorder appends to a tape for any number of goroutines.
//
// A nil *Recorder records nothing and costs nothing: every method returns at once. A hook that has something to build
// before it can record asks Enabled first.
//
// Its first failure sticks and ends the recording, for a tape with a gap would be worse than one that ends: of the tape,
// of a payload that could not be stored, of a record that has no form on a tape.
type Recorder struct {
	store  cas.Store
	recent *recent
	now    func() (wallMS, monotonicMS int64)
	sync   func() error
	clean  func(b []byte) []byte
	bare   bool
	told   func(error)   // Failed
	g      atomic.Uint64 // the ordinal given last

	mu    sync.Mutex
	w     *Writer
	rec   Record // the one being written, without its kind
	seq   uint64 // of the next record
	phase Phase
	err   error
}

// NewRecorder returns a recorder that appends to w, which is its own from now on. It starts no goroutine and closes
// nothing: Flush is all that its end needs.
func NewRecorder(w *Writer, o *RecorderOptions) *Recorder {
	r := &Recorder{w: w, recent: &recent{seed: maphash.MakeSeed()}}
	if o != nil {
		r.store, r.now, r.sync, r.told = o.Store, o.Now, o.Sync, o.Failed
		r.clean, w.c.clean, r.bare = o.Clean, o.Clean, o.Bare
	}
	if r.store == nil {
		r.store = cas.NewMemory()
	}
	if r.now == nil {
		r.now = newClock().now
	}
	return r
}

// Enabled reports whether anything is recorded.
func (r *Recorder) Enabled() bool { return r != nil }

// Record appends k with the next seq, the next ordinal, the phase and the time, which it takes under one lock: order on
// the tape is order of all of them. The error is the recorder's first one.
func (r *Recorder) Record(k Kind) error {
	if r == nil {
		return nil
	}
	return r.record(k, nil)
}

// RecordRaw is Record for a kind with strings that are not UTF-8, whose true bytes are raw.
func (r *Recorder) RecordRaw(k Kind, raw []RawBytes) error {
	if r == nil {
		return nil
	}
	return r.record(k, raw)
}

// record is the way of a recorder that is there. The methods themselves are so small that the compiler puts them where
// they are called: a nil recorder then costs a comparison.
func (r *Recorder) record(k Kind, raw []RawBytes) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	wall, mono := r.now()
	r.rec.Seq, r.rec.Phase, r.rec.VirtualTimeMS, r.rec.MonotonicMS = r.seq, r.phase, wall, mono
	if raw != nil {
		r.rec.Raw = raw
	}
	if !r.bare {
		r.rec.G = r.g.Add(1)
	}
	err := r.w.append(&r.rec, k)
	if err == nil {
		r.seq++
	}
	if raw != nil { // they are the caller's
		r.rec.Raw = nil
	}
	return r.first(err)
}

// MonotonicMS is the time that a record would have now, in ms since the recording began. A nil recorder's is 0.
func (r *Recorder) MonotonicMS() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ms := r.now()
	return ms
}

// Clean returns b as it may be written: see RecorderOptions.Clean. Who takes a digest of bytes that stand on the tape takes it of
// these, or of a Payload's. A nil recorder's is b.
func (r *Recorder) Clean(b []byte) []byte {
	if r == nil || r.clean == nil || len(b) < minCleaned {
		return b
	}
	return r.clean(b)
}

// Payload returns the payload of b, cleaned, which is in the store when it returns: its Hash is the one that a record may name.
// It may be what an earlier call with the same bytes returned, and is not to be changed. A nil recorder's is nil.
func (r *Recorder) Payload(b []byte) (*Payload, error) {
	if r == nil {
		return nil, nil
	}
	return r.payload(b)
}

func (r *Recorder) payload(b []byte) (*Payload, error) {
	p, err := r.recent.payload(r.store, r.Clean(b)) // as it is to be written: what was clean once may hold a secret by now
	return p, r.keep(err)
}

// Borrow is Payload for a record that is written before b changes, without a copy: the text of what it returns is b's own memory.
func (r *Recorder) Borrow(b []byte) (*Payload, error) {
	if r == nil {
		return nil, nil
	}
	p, err := borrow(r.store, r.Clean(b))
	return p, r.keep(err)
}

// Store returns the store of payloads, nil of a nil recorder.
func (r *Recorder) Store() cas.Store {
	if r == nil {
		return nil
	}
	return r.store
}

// Ordinal takes the next global ordinal, for something that stands elsewhere than on the tape: a chunk, a frame. The
// first is 1; a nil recorder's is 0, and a bare one's.
func (r *Recorder) Ordinal() uint64 {
	if r == nil || r.bare {
		return 0
	}
	return r.g.Add(1)
}

// SetPhase says whose doing the records from now on are.
func (r *Recorder) SetPhase(p Phase) {
	if r != nil {
		r.setPhase(p)
	}
}

func (r *Recorder) setPhase(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = p
}

// Flush is the barrier: what was recorded before it is in the kernel's hands when it returns, and with
// RecorderOptions.Sync on the disk. Others may record while it waits for the disk.
func (r *Recorder) Flush() error {
	if r == nil {
		return nil
	}
	return r.flush()
}

func (r *Recorder) flush() error {
	if err := r.handOn(); err != nil || r.sync == nil {
		return err
	}
	return r.keep(r.sync())
}

// handOn hands what was recorded to the kernel, after a failure too: what came before it is whole.
func (r *Recorder) handOn() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.w.Flush(); r.err == nil {
		return r.first(err)
	}
	return r.err
}

// Fail ends the recording with err, unless it has ended: something that the tape would name could not be kept.
func (r *Recorder) Fail(err error) {
	if r != nil {
		_ = r.keep(err) // the caller has it
	}
}

// keep makes err the recorder's where it is the first, and returns it.
func (r *Recorder) keep(err error) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return r.first(err)
	}
	return err
}

// first is called under mu while nothing has failed. It makes err, which may be nil, the recorder's, tells of it, and returns it.
func (r *Recorder) first(err error) error {
	r.err = err
	if err != nil && r.told != nil {
		r.mu.Unlock() // who is told may ask
		defer r.mu.Lock()
		r.told(err)
	}
	return err
}

// Count returns the number of records so far.
func (r *Recorder) Count() int {
	n, _ := r.state()
	return n
}

// Err returns what the recorder failed with, nil while it works.
func (r *Recorder) Err() error {
	_, err := r.state()
	return err
}

func (r *Recorder) state() (records int, err error) {
	if r == nil {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.seq), r.err
}

// A clock is that of this machine, in ms. Records often come by the thousand in a millisecond, so the system is asked for
// the wall clock again only when one of the two times is another by now: else for the time since begun alone.
type clock struct {
	begun      time.Time
	wall, mono int64         // of the last look at both
	until      time.Duration // since begun: from then on one of them is another
}

// newClock returns a clock whose monotonic part begins now.
func newClock() *clock { return &clock{begun: time.Now()} }

// now is RecorderOptions.Now. It is for one goroutine at a time.
func (c *clock) now() (wallMS, monotonicMS int64) {
	if time.Since(c.begun) >= c.until {
		c.look()
	}
	return c.wall, c.mono
}

func (c *clock) look() {
	const ms = time.Millisecond
	t := time.Now()
	since := t.Sub(c.begun)
	c.wall, c.mono = t.UnixMilli(), since.Milliseconds()
	c.until = since + min(ms-time.Duration(t.Nanosecond())%ms, ms-since%ms)
}

// A recent holds inline payloads that were made lately: what runs in a loop reads the same variable, lists the same directory and gets
// the same answer again. It may be used by several goroutines at once, and holds 256 KiB at most.
type recent struct {
	seed  maphash.Seed
	slots [64]atomic.Pointer[Payload] // each payload in the one that the hash of its bytes says
}

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
