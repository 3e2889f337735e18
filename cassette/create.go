package cassette

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

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
	orDefault(&o.ID, newID())
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

// newID returns a random UUID (version 4).
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
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
