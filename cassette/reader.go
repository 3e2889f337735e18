package cassette

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Manifest returns the manifest, with defaults for what may be absent. Of an unfinished one it has what was known at the start.
func (r *Reader) Manifest() *Manifest { return &r.manifest }

// Final returns the final record; nil of an unfinished one.
func (r *Reader) Final() *Final {
	if r.state != StateFinished {
		return nil
	}
	return r.final
}

// ScrubReport returns what scrubbing did; nil where an unfinished one has none.
func (r *Reader) ScrubReport() *ScrubReport { return r.report }

// Quota returns quota.json, nil where there is none.
func (r *Reader) Quota() *Capability { return r.quota }

// Discovery returns discovery.json, nil where there is none.
func (r *Reader) Discovery() *Capability { return r.discovery }

// State says whether the recording came to its end.
func (r *Reader) State() State { return r.state }

// Unfinished returns why State says so: the refusal without Partial. Nil of a finished one.
func (r *Reader) Unfinished() error { return r.why }

// Dir returns the directory.
func (r *Reader) Dir() string { return r.dir }

// Size returns the bytes of output.
func (r *Reader) Size() int64 { return r.size }

// OutputReader returns the output.
func (r *Reader) OutputReader() *io.SectionReader {
	if r.raw == nil {
		return io.NewSectionReader(bytes.NewReader(nil), 0, 0)
	}
	return io.NewSectionReader(r.raw, 0, r.size)
}

// RawOutput returns the output as a whole. It is for small ones.
func (r *Reader) RawOutput() ([]byte, error) { return io.ReadAll(r.OutputReader()) }

// EventsOptions say which events. Nil and zero are all.
type EventsOptions struct {
	From    time.Duration // from the first event whose time is this or later; what is before is not read
	Streams []Stream      // nil: all
	NoBytes bool          // chunks come without their bytes
}

// Events returns events of all streams in the order of seq. It reads as it goes; an event's Bytes are valid until the next.
// After an error it ends.
func (r *Reader) Events(opts *EventsOptions) iter.Seq2[*Event, error] {
	o := EventsOptions{}
	if opts != nil {
		o = *opts
	}
	return func(yield func(*Event, error) bool) {
		m, err := r.merger(&o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer m.close()
		var buf []byte
		for {
			e, err := m.next()
			if errors.Is(err, io.EOF) || r.state == StateUnfinished && r.over(e, err) {
				return
			}
			if err == nil && e.Chunk != nil && !o.NoBytes {
				buf, err = r.bytes(e, buf, m.file.line)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// over reports whether an unfinished cassette ends before e, or with err.
func (r *Reader) over(e *Event, err error) bool {
	if err != nil {
		return Code(err) != ""
	}
	return e.Seq > r.last
}

func (r *Reader) merger(o *EventsOptions) (*merger, error) {
	streams, final := lineStreams, r.final
	if o.Streams != nil {
		streams, final = nil, nil
		for _, s := range o.Streams {
			if s == StreamFinal {
				final = r.final
			} else {
				streams = append(streams, s)
			}
		}
	}
	return newMerger(r.dir, streams, final, o.From, r.o.Partial)
}

// bytes reads the bytes of the chunk e into buf. Where they were not checked by Open they are now.
func (r *Reader) bytes(e *Event, buf []byte, line int) ([]byte, error) {
	c := e.Chunk
	if err := checkRange(c, c.Offset, r.size, line); err != nil {
		return buf, err
	}
	if int64(cap(buf)) < c.Length {
		buf = make([]byte, c.Length)
	}
	e.Bytes = buf[:c.Length]
	if c.Length == 0 {
		return buf, nil
	}
	if _, err := r.raw.ReadAt(e.Bytes, c.Offset); err != nil {
		return buf, err
	}
	if !r.o.Lazy {
		return buf, nil
	}
	sum := sha256.Sum256(e.Bytes)
	return buf, checkDigest(c, sum[:], line)
}

// OpenOptions say what is expected. Nil and zero check everything.
type OpenOptions struct {
	Expect   *Binding  // the cassette must be this one
	Emulator *Emulator // its frames must come from this one
	// Partial opens what a recorder that was killed left behind: up to the first gap, torn line, or chunk that is not whole. Such
	// a reader says StateUnfinished, unless everything is whole after all.
	Partial bool
	// Lazy checks the streams as they are read, not now: the manifest and that the files are there. It opens a cassette of any
	// length at once. Who shows what is in it calls CheckOutput before.
	Lazy bool
}

// A Binding names one cassette with its content. What is "" is not compared.
type Binding struct {
	ID     string `json:"id"`
	SHA256 string `json:"sha256"`
}

// A State says whether a recording came to its end.
type State string

// The states.
const (
	StateFinished   State = "finished"
	StateUnfinished State = "unfinished"
)

// A Reader reads one cassette. Close it.
type Reader struct {
	dir       string
	o         OpenOptions
	manifest  Manifest
	final     *Final
	report    *ScrubReport
	quota     *Capability
	discovery *Capability
	raw       *os.File // nil where a partial one has none
	size      int64    // bytes of output that belong to it
	last      uint64   // the last seq that belongs to it; 0 without a limit
	state     State
	why       error // why it is unfinished
}

// Open opens the cassette in dir and checks it, reading everything once; memory does not grow with it. What it refuses is an
// error of this package: see Code.
func Open(dir string, opts *OpenOptions) (*Reader, error) {
	r := &Reader{dir: dir, state: StateFinished}
	if opts != nil {
		r.o = *opts
	}
	if st, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, refuse(filepath.Base(dir), 0, ErrNotDirectory, "a cassette is one")
	}
	if err := r.open(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) open() error {
	if err := r.readManifest(); err != nil {
		return err
	}
	if err := r.readWhole(); err != nil {
		return err
	}
	if err := r.openRaw(); err != nil {
		return err
	}
	if r.o.Lazy && r.state == StateFinished && !r.o.Partial {
		return r.present()
	}
	return r.scan()
}

// Close closes the files.
func (r *Reader) Close() error {
	if r.raw == nil {
		return nil
	}
	return r.raw.Close()
}

// unfinished makes err the reason that the cassette is unfinished, where that may be; else it returns err.
func (r *Reader) unfinished(err error) error {
	if !r.o.Partial {
		return err
	}
	r.state, r.why = StateUnfinished, errors.Join(r.why, err)
	return nil
}

// readManifest reads and checks the manifest; of an unfinished recording what was known when it began.
func (r *Reader) readManifest() error {
	err := r.readJSON(ManifestFile, &r.manifest)
	if errors.Is(err, fs.ErrNotExist) {
		err = refuse(ManifestFile, 0, ErrNoManifest, "")
	}
	if err == nil {
		return r.manifest.check(&r.o)
	}
	if Code(err) == "" || errors.Is(err, ErrTooLong) {
		return err
	}
	if err := r.unfinished(err); err != nil {
		return err
	}
	r.manifest = Manifest{}
	if err := r.readJSON(startFile, &r.manifest); err != nil {
		r.manifest = Manifest{Version: Version, Terminal: Terminal{Emulator: CurrentEmulator()}}
	}
	r.manifest.defaults()
	if r.manifest.Version > Version {
		return refuse(startFile, 0, ErrVersion, "version %d, at most %d is read here", r.manifest.Version, Version)
	}
	return r.manifest.bound(&r.o)
}

// readJSON reads a whole file into v.
func (r *Reader) readJSON(name string, v any) error {
	path := filepath.Join(r.dir, name)
	if st, err := os.Stat(path); err != nil {
		return err
	} else if !st.Mode().IsRegular() {
		return refuse(name, 0, ErrMissingFile, "expected a regular file, found %s", st.Mode().Type())
	}
	b, err := readSmall(path)
	if err != nil {
		return err
	}
	if b = []byte(strings.TrimSpace(string(b))); len(b) == 0 {
		return refuse(name, 0, ErrBadJSON, "expected an object, found nothing")
	}
	return decode(name, 0, b, v)
}

// readWhole reads the files that are not streams.
func (r *Reader) readWhole() error {
	for _, f := range []struct {
		name     string
		read     func() error
		required bool
	}{
		{FinalFile, r.readFinal, true},
		{ScrubReportFile, func() error { return optional(r, ScrubReportFile, &r.report) }, true},
		{QuotaFile, func() error { return optional(r, QuotaFile, &r.quota) }, false},
		{DiscoveryFile, func() error { return optional(r, DiscoveryFile, &r.discovery) }, false},
	} {
		err := f.read()
		if errors.Is(err, fs.ErrNotExist) {
			if !f.required {
				continue
			}
			err = refuse(f.name, 0, ErrMissingFile, "")
		}
		if err != nil {
			if err := r.unfinished(err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reader) readFinal() error {
	if err := optional(r, FinalFile, &r.final); err != nil {
		return err
	}
	return r.final.check()
}

// check refuses what no program can have ended with.
func (f *Final) check() error {
	if f.DurationMS < 0 {
		return refuse(FinalFile, 0, ErrBadJSON, "duration_ms: expected 0 or more, found %d", f.DurationMS)
	}
	return nil
}

// optional reads a file into a value of its own; *to stays nil on an error.
func optional[T any](r *Reader, name string, to **T) error {
	v := new(T)
	if err := r.readJSON(name, v); err != nil {
		return err
	}
	*to = v
	return nil
}

func (r *Reader) openRaw() error {
	f, err := openRegular(filepath.Join(r.dir, OutputFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r.unfinished(refuse(OutputFile, 0, ErrMissingFile, ""))
	}
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	r.raw, r.size = f, st.Size()
	return nil
}

// present reports the first stream that is not there.
func (r *Reader) present() error {
	for _, s := range lineStreams {
		f, err := openRegular(filepath.Join(r.dir, s.File()))
		if errors.Is(err, fs.ErrNotExist) {
			return refuse(s.File(), 0, ErrMissingFile, "")
		}
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// defaults puts in what may be absent.
func (m *Manifest) defaults() {
	orDefault(&m.Terminal.InitialRows, DefaultRows)
	orDefault(&m.Terminal.InitialCols, DefaultCols)
	orDefault(&m.Timing.ReplayDefault, DefaultReplay)
	orDefault(&m.Command.WorkdirPolicy, "unspecified")
}

// check refuses what the format says.
func (m *Manifest) check(o *OpenOptions) error {
	switch {
	case m.Version > Version:
		return refuse(ManifestFile, 0, ErrVersion, "version %d, at most %d is read here: use a newer tapedeck", m.Version, Version)
	case m.Version < 1:
		return refuse(ManifestFile, 0, ErrVersion, "expected version %d, found %d", Version, m.Version)
	case m.ID == "":
		return refuse(ManifestFile, 0, ErrNoID, "")
	case m.ContentDigest.SHA256 == "":
		return refuse(ManifestFile, 0, ErrNoDigest, "")
	case m.Terminal.Emulator.Name == "":
		return refuse(ManifestFile, 0, ErrNoEmulator, "")
	case m.Timing.ResolutionMS <= 0:
		return refuse(ManifestFile, 0, ErrResolution, "found %d", m.Timing.ResolutionMS)
	}
	for _, f := range m.RequiredFeatures {
		return refuse(ManifestFile, 0, ErrFeature, "%q", f)
	}
	m.defaults()
	return m.bound(o)
}

// bound compares with what the caller expects.
func (m *Manifest) bound(o *OpenOptions) error {
	if b := o.Expect; b != nil {
		if b.ID != "" && b.ID != m.ID {
			return refuse(ManifestFile, 0, ErrNotBound, "expected id %q, found %q", b.ID, m.ID)
		}
		if b.SHA256 != "" && !strings.EqualFold(b.SHA256, m.ContentDigest.SHA256) {
			return refuse(ManifestFile, 0, ErrNotBound, "expected sha256 %q, found %q", b.SHA256, m.ContentDigest.SHA256)
		}
	}
	if e := o.Emulator; e != nil && *e != m.Terminal.Emulator {
		return refuse(ManifestFile, 0, ErrEmulator, "expected %q %q, found %q %q", e.Name, e.Version,
			m.Terminal.Emulator.Name, m.Terminal.Emulator.Version)
	}
	return nil
}

// startFile is the manifest as far as it is known at the start: ours, gone when the recording ends. It says what Partial
// could not know else.
const startFile = "unfinished.json"
