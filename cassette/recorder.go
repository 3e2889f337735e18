package cassette

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// maxQueued is how many bytes of output wait for the recorder's goroutine at most; then Output waits. As much again is being
// worked on.
const maxQueued = 2 << 20

// mergeFrom is how many bytes wait when reads of the same moment begin to be one chunk, of up to mergeTo bytes.
const (
	mergeFrom = 256 << 10
	mergeTo   = 64 << 10
)

// A Recorder writes one cassette. Its methods may be called by several goroutines at once; seq is the order in which they
// came. After an error that says that the disk failed every call returns it, and what was recorded opens as unfinished.
//
// One goroutine of its own writes: newRecorder starts it, Finish or Abort stops it (closing) and waits for it (done).
type Recorder struct {
	dir string
	o   CreateOptions
	w   *worker

	wake   chan struct{} // something waits in next; of capacity 1
	plenty chan struct{} // much waits in next, do not dawdle; of capacity 1
	done   chan struct{} // the goroutine has ended

	mu      sync.Mutex
	room    sync.Cond // next is taken, or the recorder has ended
	seq     uint64
	last    int64 // the last t_ms
	offset  int64 // bytes of output so far
	next    *batch
	spare   *batch
	err     error // the first one of the goroutine
	closing bool
	masked  tty.Report // in quota and discovery
}

// An item is something that was recorded and waits to be written. What it is stands in one of its fields; output if in none.
type item struct {
	Timed
	g       uint64
	n       int // bytes of the batch's data
	input   *Input
	payload json.RawMessage
	frame   bool // the place of a frame, which the screen fills
	echo    echo // no event: whether the terminal echoes
}

// A batch is what came while the goroutine was busy with the one before.
type batch struct {
	data  []byte // of the outputs, in their order
	items []item
}

func newBatch() *batch { return &batch{data: make([]byte, 0, 64<<10)} }

// stamp gives the next place in the order of everything. The caller holds mu.
func (r *Recorder) stamp() (Timed, uint64) {
	ms := r.o.Clock().Milliseconds()
	ms -= ms % r.o.ResolutionMS
	r.last = max(r.last, ms)
	r.seq++
	var g uint64
	if r.o.G != nil {
		g = r.o.G()
	}
	return Timed{r.seq, r.last}, g
}

// Output records what the program wrote in one read. It copies p and returns at once, unless the disk is behind by a few
// MiB. Reads of the same moment become one chunk when they come faster than they are written.
func (r *Recorder) Output(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.next.data)+min(len(p), mergeTo) > maxQueued && r.err == nil && !r.closing {
			r.room.Wait()
		}
		if err := r.open(); err != nil {
			return err
		}
		n := min(len(p), mergeTo)
		r.add(p[:n])
		if p = p[n:]; len(p) == 0 {
			return nil
		}
	}
}

// add puts one chunk into the queue. The caller holds mu.
func (r *Recorder) add(p []byte) {
	b := r.next
	r.offset += int64(len(p))
	waited := len(b.data)
	if len(b.data)+len(p) > cap(b.data) { // in two steps: what append grows by is too much for a bound
		b.data = append(make([]byte, 0, maxQueued), b.data...)
	}
	b.data = append(b.data, p...)
	if waited < mergeFrom || !r.merge(b, len(p)) {
		at, g := r.stamp()
		b.items = append(b.items, item{Timed: at, g: g, n: len(p)})
	}
	signal(r.wake)
	if waited >= mergeFrom {
		signal(r.plenty)
	}
}

// merge makes n more bytes part of the last chunk where that is of the same moment, and nothing else has an ordinal between.
func (r *Recorder) merge(b *batch, n int) bool {
	last := &b.items[len(b.items)-1]
	if last.n == 0 || last.n+n > mergeTo || r.o.G != nil {
		return false
	}
	ms := r.o.Clock().Milliseconds()
	if max(ms-ms%r.o.ResolutionMS, r.last) != last.TMS {
		return false
	}
	last.n += n
	return true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// open returns why nothing can be recorded any more. The caller holds mu.
func (r *Recorder) open() error {
	if r.err != nil {
		return r.err
	}
	if r.closing {
		return ErrFinished
	}
	return nil
}

// put records what is not output.
func (r *Recorder) put(fill func(*item)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return err
	}
	var it item
	it.Timed, it.g = r.stamp()
	fill(&it)
	if it.input != nil {
		it.input.Timed, it.input.G = it.Timed, it.g
	}
	r.next.items = append(r.next.items, it)
	signal(r.wake)
	return nil
}

// Input records bytes that the program was given, with the name of the key where it is known, else "".
func (r *Recorder) Input(p []byte, key string) error {
	in := &Input{Kind: KindInput, Bytes: append([]byte(nil), p...), Key: key}
	return r.put(func(it *item) { it.input = in })
}

// Resize records that the terminal has another size from here on.
func (r *Recorder) Resize(s Size) error {
	return r.put(func(it *item) { it.input = &Input{Kind: KindResize, Size: &s} })
}

// Signal records that the program was sent a signal.
func (r *Recorder) Signal(name string) error {
	return r.put(func(it *item) { it.input = &Input{Kind: KindSignal, Signal: name} })
}

// ServiceEvent records what the layer above noted: any JSON.
func (r *Recorder) ServiceEvent(payload json.RawMessage) error {
	one, err := compact(payload)
	if err != nil {
		return err
	}
	return r.put(func(it *item) { it.payload = one })
}

// NoEcho says whether what is typed from here on is not echoed, line by line (ICANON without ECHO): a password, which is masked
// whatever it looks like, and becomes known as a secret to CreateOptions.Scrub. It is no event.
func (r *Recorder) NoEcho(on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return err
	}
	it := item{echo: echoOn}
	if on {
		it.echo = echoOff
	}
	r.next.items = append(r.next.items, it)
	signal(r.wake)
	return nil
}

// An echo is what NoEcho said.
type echo uint8

const (
	echoOn echo = iota + 1
	echoOff
)

// Offset returns how many bytes of output were recorded so far.
func (r *Recorder) Offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.offset
}

// Err returns the error that ended the recording, nil where there is none.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// fail keeps the first error and wakes who waits.
func (r *Recorder) fail(err error) {
	r.mu.Lock()
	first := r.err == nil
	if first {
		r.err = err
	}
	r.room.Broadcast()
	r.mu.Unlock()
	if first && r.o.Failed != nil {
		r.o.Failed(err)
	}
}

// take returns what waits, and whether nothing more will come.
func (r *Recorder) take() (b *batch, closing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, r.next = r.next, r.spare
	r.spare = b
	r.next.data, r.next.items = r.next.data[:0], r.next.items[:0]
	r.room.Broadcast()
	return b, r.closing
}

// waiting returns how many bytes of output wait.
func (r *Recorder) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.next.data)
}

// reserve gives what comes last its place.
func (r *Recorder) reserve() (at Timed, g uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stamp()
}

// reserveFrame gives a frame its place, behind all that has come until now. It reports false when the recorder closes.
func (r *Recorder) reserveFrame() bool {
	return nil == r.put(func(it *item) { it.frame = true })
}

// CreateOptions say what is recorded. Nil and zero work.
type CreateOptions struct {
	ID            string // "" is a random UUID
	Harness       Harness
	Command       Command
	Terminal      Terminal   // 0 is 24 and 80; the emulator is always our own
	ResolutionMS  int64      // 0 is 100
	ReplayDefault ReplayMode // "" is collapsed
	Provenance    Provenance // what is "" is filled in: OS, architecture, now, our version
	Optional      map[string]json.RawMessage

	Scrub     *scrub.Scrubber // nil: shapes of secrets, and what is typed without echo
	Accounts  []string        // account identifiers that are masked
	KeepEmail bool            // addresses are not masked
	Preserve  []string        // for the scrub report: what is kept on purpose

	Overwrite bool // a cassette that is there already goes. One of a newer version never does
	Sync      bool // the whole is on the disk when Finish returns

	// Clock tells the time since the start, and must be monotonic. Nil is the machine's. It is called under a lock.
	Clock func() time.Duration
	// G gives the global ordinal of what happens now. Nil: events have none. It is called under a lock, in the order of seq.
	G func() uint64
	// FrameEvery is how long a screen that keeps changing goes without a frame at most. 0 is 100 ms; below 0 there is one frame,
	// at the end.
	FrameEvery time.Duration
	// Failed is told of the error that ends the recording, once, on the goroutine that met it. Nil: who records looks at the errors.
	Failed func(error)
	// Live is given each frame when it is written, on the recorder's goroutine. Nil drops them.
	Live func(*Frame)
	// Progress is told, while Finish reads again what the screen model had to skip, how many bytes of how many it has read.
	Progress func(done, total int64)
}

// CurrentEmulator returns the emulator of frames that are made here.
func CurrentEmulator() Emulator {
	name, v := vt.Pin()
	return Emulator{Name: name, Version: v}
}

// Create begins a cassette in dir, which is made where it is not there. ErrExists: files of a cassette are there already.
// ErrVersion: those of a newer version of the format.
func Create(dir string, opts *CreateOptions) (*Recorder, error) {
	o := CreateOptions{}
	if opts != nil {
		o = *opts
	}
	if err := o.fill(); err != nil {
		return nil, err
	}
	if err := makeRoom(dir, o.Overwrite); err != nil {
		return nil, err
	}
	return newRecorder(dir, &o)
}

// fill puts the defaults in.
func (o *CreateOptions) fill() error {
	if o.ResolutionMS < 0 {
		return fmt.Errorf("%w: %d", ErrResolution, o.ResolutionMS)
	}
	orDefault(&o.ID, uuid.NewString())
	orDefault(&o.ResolutionMS, DefaultResolutionMS)
	orDefault(&o.ReplayDefault, DefaultReplay)
	orDefault(&o.Terminal.InitialRows, DefaultRows)
	orDefault(&o.Terminal.InitialCols, DefaultCols)
	orDefault(&o.Command.WorkdirPolicy, "unspecified")
	orDefault(&o.Provenance.OS, runtime.GOOS)
	orDefault(&o.Provenance.Arch, runtime.GOARCH)
	orDefault(&o.Provenance.RecordedAt, time.Now().UTC().Format(time.RFC3339))
	orDefault(&o.Provenance.RecorderVersion, "tapedeck "+version.Version)
	orDefault(&o.FrameEvery, 100*time.Millisecond)
	if o.Scrub == nil { // of its own: it comes to know what is typed without echo
		o.Scrub = scrub.New(scrub.Key{}, nil)
	}
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	o.Terminal.Emulator = CurrentEmulator()
	return nil
}

// manifest returns what is known at the start.
func (o *CreateOptions) manifest() *Manifest {
	m := &Manifest{Version: Version, ID: o.ID, Harness: o.Harness, Command: o.Command, Terminal: o.Terminal,
		Timing: Timing{o.ResolutionMS, ClockPolicy, o.ReplayDefault}, Provenance: o.Provenance, RequiredFeatures: []string{}, Optional: o.Optional}
	if m.Optional == nil {
		m.Optional = map[string]json.RawMessage{}
	}
	return m
}

// mask takes the secrets out of what the manifest says of the program.
func (o *CreateOptions) mask(t *texts) (err error) {
	if o.Command, err = maskedIn(t, o.Command); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	if o.Harness, err = maskedIn(t, o.Harness); err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	if o.Terminal, err = maskedIn(t, o.Terminal); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	if o.Optional, err = maskedIn(t, o.Optional); err != nil {
		return fmt.Errorf("optional: %w", err)
	}
	return nil
}

// maskedIn returns v with its strings masked; nothing of v is changed.
func maskedIn[T any](t *texts, v T) (out T, err error) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return out, err
	}
	if b, err = mapStrings(b, t.mask); err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}

// size returns the terminal's at the start.
func (o *CreateOptions) size() Size { return Size{o.Terminal.InitialRows, o.Terminal.InitialCols} }

// scrubbing returns what is looked for.
func (o *CreateOptions) scrubbing() *tty.Options {
	return &tty.Options{Scrub: o.Scrub, Accounts: o.Accounts, KeepEmail: o.KeepEmail, Rows: o.Terminal.InitialRows,
		Cols: o.Terminal.InitialCols}
}

func orDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

var allFiles = []string{ManifestFile, InputFile, OutputFile, ChunksFile, FramesFile, ServiceFile, FinalFile, QuotaFile,
	DiscoveryFile, ScrubReportFile, startFile}

// makeRoom makes dir and sees that no cassette is in it. The manifest goes first, so that what is left is never finished.
func makeRoom(dir string, overwrite bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := refuseNewer(dir); err != nil {
		return err
	}
	for _, name := range allFiles {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if !overwrite {
			return fmt.Errorf("%s: %w: %s", dir, ErrExists, name)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// refuseNewer refuses a cassette whose version is above ours. A manifest that cannot be read says no version.
func refuseNewer(dir string) error {
	var m struct{ Version int }
	b, err := readSmall(filepath.Join(dir, ManifestFile))
	if err != nil || json.Unmarshal(b, &m) != nil || m.Version <= Version {
		return nil
	}
	return refuse(ManifestFile, 0, ErrVersion, "version %d, at most %d is written here: choose another directory", m.Version, Version)
}
