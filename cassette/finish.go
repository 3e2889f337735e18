package cassette

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

func newRecorder(dir string, o *CreateOptions) (*Recorder, error) {
	texts := newTexts(o.scrubbing())
	if err := o.mask(texts); err != nil {
		return nil, err
	}
	f, err := createFiles(dir)
	if err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(dir, startFile), o.manifest(), o.Sync); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return startRecorder(f, o, texts), nil
}

// startRecorder starts the goroutine that writes f.
func startRecorder(f *files, o *CreateOptions, texts *texts) *Recorder {
	r := &Recorder{dir: f.dir, o: *o, wake: make(chan struct{}, 1), plenty: make(chan struct{}, 1), done: make(chan struct{}),
		next: newBatch(), spare: newBatch()}
	r.room.L = &r.mu
	so := o.scrubbing()
	r.w = &worker{r: r, start: time.Now(), files: f, mask: tty.NewLive(so), keys: newKeys(f.input, so), sink: newSink(f), texts: texts,
		screen: newScreener(o.size(), f.frames, o.Live)}
	go r.w.run()
	return r
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
// final record in the order is given here; its other fields are the caller's. ErrNoFinal: f is nil; ErrBadJSON: its duration is
// below 0. The recording goes on then.
func (r *Recorder) Finish(f *Final) (*Manifest, error) {
	if f == nil {
		return nil, ErrNoFinal
	}
	if err := f.check(); err != nil {
		return nil, err
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
	w.found()
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
		at, g := w.r.reserve()
		w.screen.frameAt(w.sink.expected, at, g)
	}
	if err := w.screen.settle(); err != nil {
		return err
	}
	return w.files.flush()
}

// rescanMax is up to how many bytes of output the closed streams are looked through as a whole once more, for what became known by
// now. Of more, the scan while it was recorded counts; Scrub looks through all of it.
const rescanMax = 16 << 20

// maxRescans is how often that is done at most: a mask may make a secret of what stands beside it.
const maxRescans = 4

// rescrub masks what was found too late where it was written, and writes what follows from it anew. It returns the digest of the
// output.
func (r *Recorder) rescrub() (digest []byte, err error) {
	w := r.w
	digest = w.sink.whole.Sum(nil)
	for range maxRescans {
		if len(w.late)+len(w.lateKeys) == 0 { // else they would be found again, and counted twice
			if err := w.rescan(); err != nil {
				return nil, err
			}
		}
		if len(w.late)+len(w.lateKeys) == 0 {
			return digest, nil
		}
		sortHits(w.late)
		sortHits(w.lateKeys)
		m := &remake{from: r.dir, to: r.dir, size: r.o.size(), hits: w.late, keys: w.lateKeys, sync: r.o.Sync}
		if err := errors.Join(m.frames(), m.input()); err != nil {
			return nil, err
		}
		if digest, err = m.output(); err != nil {
			return nil, err
		}
		if err := m.chunks(); err != nil {
			return nil, err
		}
		w.late, w.lateKeys = nil, nil
	}
	return digest, nil
}

// rescan looks through what is on the disk.
func (w *worker) rescan() error {
	if w.sink.written > rescanMax {
		return nil
	}
	hits, keys, err := findIn(w.files.dir, w.r.o.scrubbing())
	if err != nil {
		return err
	}
	w.texts.report.Count(late(hits))
	w.texts.report.Count(late(keys))
	w.late = append(w.late, hits...)
	w.lateKeys = append(w.lateKeys, keys...)
	return nil
}

// late says of hits that they were found too late.
func late(hits []tty.Hit) []tty.Hit {
	for i := range hits {
		hits[i].Late = true
	}
	return hits
}

// seal writes the whole files, the manifest last.
func (r *Recorder) seal(f *Final) (*Manifest, error) {
	digest, err := r.rescrub()
	if err != nil {
		return nil, err
	}
	final, err := r.final(f)
	if err != nil {
		return nil, err
	}
	m := r.o.manifest()
	m.ContentDigest.SHA256 = hex.EncodeToString(digest)
	if err := writeJSON(filepath.Join(r.dir, FinalFile), final, r.o.Sync); err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(r.dir, ScrubReportFile), r.report(), r.o.Sync); err != nil {
		return nil, err
	}
	if r.o.Sync {
		if err := syncFiles(r.dir); err != nil {
			return nil, err
		}
	}
	if err := writeJSON(filepath.Join(r.dir, ManifestFile), m, r.o.Sync); err != nil {
		return nil, err
	}
	return m, removeStart(r.dir)
}

// final returns f with its place in the order and without secrets.
func (r *Recorder) final(f *Final) (*Final, error) {
	final, err := maskedIn(r.w.texts, f)
	if err != nil {
		return nil, err
	}
	final.Timed, final.G = r.reserve()
	return final, nil
}

// report returns what scrubbing did.
func (r *Recorder) report() *ScrubReport {
	all := r.w.texts.report
	all.Add(r.masked)
	all.Add(r.w.mask.Report())
	all.Add(r.w.keys.mask.Report())
	return newReport(&all, r.o.scrubbing().RuleNames(), r.o.Command.EnvAllowlist, r.o.Preserve)
}

// newReport returns what rules that were applied did.
func newReport(all *tty.Report, applied, env, preserved []string) *ScrubReport {
	rules := slices.Concat(applied, all.Rules())
	slices.Sort(rules)
	s := &ScrubReport{Status: Clean, Rules: slices.Compact(rules), HitCounts: map[string]int{}, EnvAllowlist: env,
		IntentionallyPreserved: append([]string{}, preserved...), LateHits: all.Late}
	if len(all.Hits) > 0 {
		s.Status, s.HitCounts = Redacted, all.Hits
	}
	return s
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
	b, err := jsonscan.Marshal(c)
	if err != nil {
		return err
	}
	t := newTexts(r.o.scrubbing())
	if b, err = mapStrings(b, t.mask); err != nil {
		return err
	}
	r.masked.Add(t.report)
	return writeJSON(filepath.Join(r.dir, name), json.RawMessage(b), r.o.Sync)
}

// A stream is a file that is appended to through a buffer.
type stream struct {
	*bufio.Writer
	f *os.File // nil where it is somebody else's
}

func openStream(dir, name string, size int) (*stream, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &stream{bufio.NewWriterSize(f, size), f}, nil
}

func (s *stream) write(p []byte) error {
	_, err := s.Write(p)
	return err
}

// line writes v as a line of JSON.
func (s *stream) line(v any) error {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(append(b, '\n'))
}

// files are the streams of a cassette that is being written.
type files struct {
	dir                                 string
	raw, chunks, input, frames, service *stream
}

func createFiles(dir string) (*files, error) {
	f := &files{dir: dir}
	for _, s := range []struct {
		to   **stream
		name string
		size int
	}{{&f.raw, OutputFile, 256 << 10}, {&f.chunks, ChunksFile, 64 << 10}, {&f.input, InputFile, 16 << 10},
		{&f.frames, FramesFile, 64 << 10}, {&f.service, ServiceFile, 16 << 10}} {
		opened, err := openStream(dir, s.name, s.size)
		if err != nil {
			f.close()
			return nil, err
		}
		*s.to = opened
	}
	return f, nil
}

// all returns the streams, the output before its index.
func (f *files) all() []*stream { return []*stream{f.raw, f.chunks, f.input, f.frames, f.service} }

// flush gives everything to the kernel.
func (f *files) flush() error {
	for _, s := range f.all() {
		if err := s.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) close() error {
	var errs []error
	for _, s := range f.all() {
		if s != nil {
			errs = append(errs, s.f.Close())
		}
	}
	return errors.Join(errs...)
}

// writeJSON puts v in place as a whole file.
func writeJSON(path string, v any, sync bool) error {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return durable.WriteFile(path, out.Bytes(), &durable.Options{Sync: sync})
}

// compact returns one JSON value without white space.
func compact(v json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// readSmall reads a JSON file of at most MaxLine bytes.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxLine+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxLine {
		return nil, refuse(filepath.Base(path), 0, ErrTooLong, "more than %d bytes", MaxLine)
	}
	return b, nil
}
