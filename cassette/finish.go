package cassette

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/ttyscrub"
)

func newRecorder(dir string, o *CreateOptions) (*Recorder, error) {
	f, err := createFiles(dir)
	if err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(dir, startFile), o.manifest(), o.Sync); err != nil {
		return nil, errors.Join(err, f.close())
	}
	r := &Recorder{dir: dir, o: *o, wake: make(chan struct{}, 1), plenty: make(chan struct{}, 1), done: make(chan struct{}),
		next: &batch{}, spare: &batch{}}
	r.room.L = &r.mu
	so := o.scrubbing()
	r.w = &worker{r: r, start: time.Now(), files: f, mask: ttyscrub.NewLive(so), keys: newKeys(f.input, so), sink: newSink(f),
		screen: newScreener(o.Terminal.InitialRows, o.Terminal.InitialCols, f.frames, o.Live)}
	r.w.framed = r.w.start
	go r.w.run()
	return r, nil
}

// stop ends the goroutine and waits for it. It reports whether this call was the first.
func (r *Recorder) stop() bool {
	r.mu.Lock()
	first := !r.closing
	r.closing = true
	r.room.Broadcast()
	r.mu.Unlock()
	signal(r.wake)
	signal(r.plenty)
	<-r.done
	return first
}

// Abort ends the recording as it is: unfinished.
func (r *Recorder) Abort() error {
	if !r.stop() {
		return ErrFinished
	}
	return errors.Join(r.Err(), r.w.files.flush(), r.w.files.close())
}

// Finish writes what is left, the final record, the scrub report and at last the manifest, which it returns. The place of the
// final record in the order is given here; its other fields are the caller's. ErrNoFinal: f is nil, the recording goes on.
func (r *Recorder) Finish(f *Final) (*Manifest, error) {
	if f == nil {
		return nil, ErrNoFinal
	}
	if !r.stop() {
		return nil, ErrFinished
	}
	w := r.w
	w.do(w.finish)
	if err := r.Err(); err != nil {
		return nil, errors.Join(err, w.files.close())
	}
	if err := w.files.close(); err != nil {
		return nil, err
	}
	return r.seal(f)
}

// finish releases everything, and takes the last frame.
func (w *worker) finish() error {
	w.setHurry(false)
	if err := w.keys.write(w.keys.mask.Flush()); err != nil {
		return err
	}
	if err := w.release(w.mask.Flush()); err != nil {
		return err
	}
	w.late = append(w.late, w.mask.Late()...)
	if err := w.files.flush(); err != nil {
		return err
	}
	for w.behind() {
		if err := w.catchUp(); err != nil {
			return err
		}
		if p := w.r.o.Progress; p != nil {
			p(w.screen.at, w.screen.end)
		}
	}
	if w.dirty {
		at, g, offset := w.r.reserve()
		w.screen.frameAt(offset, at, g)
	}
	if err := w.screen.settle(); err != nil {
		return err
	}
	return w.files.flush()
}

// seal writes the whole files.
func (r *Recorder) seal(f *Final) (*Manifest, error) {
	final := *f
	final.Timed, final.G, _ = r.reserve()
	report := &ScrubReport{Status: Clean, Rules: []string{}, HitCounts: map[string]int{},
		EnvAllowlist: r.o.Command.EnvAllowlist, IntentionallyPreserved: r.o.Preserve}
	m := r.manifest()
	for _, w := range []struct {
		name string
		v    any
	}{{FinalFile, &final}, {ScrubReportFile, report}, {ManifestFile, m}} {
		if w.name == ManifestFile && r.o.Sync {
			if err := syncFiles(r.dir); err != nil {
				return nil, err
			}
		}
		if err := writeJSON(filepath.Join(r.dir, w.name), w.v, r.o.Sync); err != nil {
			return nil, err
		}
	}
	return m, removeStart(r.dir)
}

func removeStart(dir string) error {
	err := os.Remove(filepath.Join(dir, startFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func syncFiles(dir string) error {
	for _, name := range allFiles {
		if err := durable.SyncFile(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (r *Recorder) manifest() *Manifest {
	m := r.o.manifest()
	m.ContentDigest.SHA256 = hex.EncodeToString(r.w.sink.whole.Sum(nil))
	return m
}

// Quota records evidence of an account's quota. It is written at once.
func (r *Recorder) Quota(c *Capability) error { return r.capability(QuotaFile, c) }

// Discovery records evidence of what the program offers. It is written at once.
func (r *Recorder) Discovery(c *Capability) error { return r.capability(DiscoveryFile, c) }

func (r *Recorder) capability(name string, c *Capability) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return err
	}
	return writeJSON(filepath.Join(r.dir, name), c, r.o.Sync)
}
