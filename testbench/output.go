package testbench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An output is the tape that a run writes: a file, a writer of the caller's, memory, or two of them.
type output struct {
	rec   *tape.Recorder
	store cas.Store
	file  *tapeFile     // nil where there is none
	kept  *bytes.Buffer // nil where it is not kept in memory
}

// newOutput is the tape that c asks for; nil where it asks for none. What stands at its path stays until begin.
func newOutput(c *Config, h *tape.Header, o tape.RecorderOptions) (*output, error) {
	out := &output{store: cas.NewMemory()}
	var w io.Writer
	switch {
	case c.Emit != "":
		file, err := newTapeFile(c.Emit, c.maxTape())
		if err != nil {
			return nil, fmt.Errorf("testbench: the run's tape: %w", err)
		}
		out.file, out.store, w = file, file, file
	case c.EmitTo != nil && c.Keep:
		out.kept = new(bytes.Buffer)
		w = io.MultiWriter(c.EmitTo, out.kept)
	case c.EmitTo != nil:
		w = c.EmitTo
	case c.Keep:
		out.kept = new(bytes.Buffer)
		w = out.kept
	default:
		return nil, nil
	}
	tw, err := tape.NewWriter(w, h)
	if err != nil {
		return nil, fmt.Errorf("testbench: the run's tape: %w", err)
	}
	o.Store = out.store
	out.rec = tape.NewRecorder(tw, &o)
	return out, nil
}

// begin makes the file: all else that the run needs is there.
func (o *output) begin() error {
	if o.file == nil {
		return nil
	}
	if err := o.file.create(); err != nil {
		return fmt.Errorf("testbench: the run's tape: %w", err)
	}
	return nil
}

// close hands the tape to the kernel.
func (o *output) close() error {
	if o.file != nil && !o.file.begun() {
		return nil // the run did not begin
	}
	err := o.rec.Flush()
	if o.file != nil {
		err = errors.Join(err, o.file.close())
	}
	if err != nil {
		return fmt.Errorf("testbench: the run's tape: %w", err)
	}
	return nil
}

// read returns what was recorded so far.
func (o *output) read() (*tape.Header, []*tape.Record, error) {
	if err := o.rec.Flush(); err != nil {
		return nil, nil, err
	}
	var r io.Reader
	name := "the run's tape"
	switch {
	case o.kept != nil:
		r = bytes.NewReader(o.kept.Bytes())
	case o.file != nil:
		f, err := os.Open(o.file.path)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		r, name = f, o.file.path
	default:
		return nil, nil, errors.New("testbench: the run's tape went to Config.EmitTo; set Config.Keep to have it here too")
	}
	t, err := tape.NewReader(r, name)
	if err != nil {
		return nil, nil, err
	}
	var all []*tape.Record
	for rec, err := range t.Records() {
		if err != nil {
			return nil, nil, err
		}
		all = append(all, rec)
	}
	return t.Header(), all, nil
}

// A tapeFile is a tape on the disk and the store of its blobs, which may take max bytes together. What is written before create is held
// back.
type tapeFile struct {
	*cas.Dir
	path  string
	max   int64
	taken atomic.Int64

	file *os.File // nil until create; closed by close
	head []byte   // of the tape, until create
}

func newTapeFile(path string, limit int64) (*tapeFile, error) {
	blobs, err := cas.OpenDir(path+tape.StoreSuffix, nil)
	if err != nil {
		return nil, err
	}
	return &tapeFile{Dir: blobs, path: path, max: limit}, nil
}

// take asks for room for n bytes more.
func (f *tapeFile) take(n int64) error {
	if f.taken.Add(n) > f.max {
		return &TapeLimitError{Limit: f.max}
	}
	return nil
}

// Write implements io.Writer, for the tape.
func (f *tapeFile) Write(b []byte) (int, error) {
	if err := f.take(int64(len(b))); err != nil {
		return 0, err
	}
	if f.file == nil {
		f.head = append(f.head, b...)
		return len(b), nil
	}
	return f.file.Write(b)
}

// Put implements cas.Store.
func (f *tapeFile) Put(b []byte) (cas.Digest, error) {
	if err := f.take(int64(len(b))); err != nil {
		return cas.Digest{}, err
	}
	return f.Dir.Put(b)
}

// PutReader implements cas.Store. How long the blob is, its end tells.
func (f *tapeFile) PutReader(r io.Reader) (cas.Digest, int64, error) {
	d, n, err := f.Dir.PutReader(r)
	if err == nil {
		err = f.take(n)
	}
	return d, n, err
}

func (f *tapeFile) begun() bool { return f.file != nil }

// create makes the file of the tape, and takes away the blobs of the tape that stood there: what a killed run leaves is its own.
func (f *tapeFile) create() error {
	mode, err := f.clear()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if err := removeBlobs(f.Dir, f.path+tape.StoreSuffix, nil); err != nil {
		return errors.Join(err, out.Close())
	}
	if _, err := out.Write(f.head); err != nil {
		return errors.Join(err, out.Close())
	}
	f.file, f.head = out, nil
	return nil
}

func (f *tapeFile) close() error { return f.file.Close() }

// clear makes place for the file, and says which mode it gets.
func (f *tapeFile) clear() (fs.FileMode, error) {
	st, err := os.Lstat(f.path)
	plain := err == nil && st.Mode().IsRegular()
	if err == nil && !plain { // a link, most likely
		st, err = os.Stat(f.path)
	}
	switch {
	case plain:
		_ = os.Remove(f.path) // some file systems bring a file that was cut to the disk when it is closed
		return st.Mode().Perm(), nil
	case err == nil && !st.Mode().IsRegular():
		return 0, regular.Check(f.path)
	case err != nil:
		return 0o644, os.MkdirAll(filepath.Dir(f.path), 0o755)
	}
	return 0o644, nil
}

// removeBlobs takes away the blobs of a tape that is overwritten, but for those to keep, and the directory where it is empty then.
func removeBlobs(store *cas.Dir, dir string, keep map[cas.Digest]bool) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for d, err := range store.All() {
		if keep[d] {
			continue
		}
		if err == nil {
			err = os.Remove(store.Path(d))
		}
		if err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !notEmpty(dir) {
		return err
	}
	return nil
}

// notEmpty reports whether something stands in dir, which is left alone then: it is nobody's blob.
func notEmpty(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, _ := d.Readdirnames(1)
	return len(names) > 0
}

// whole reports the first blob that an answer of the tape needs and that is not there. What is in the blobs is looked at when they are
// used.
func (r *recorded) whole() error {
	seen := make(map[cas.Digest]bool)
	for _, rec := range r.records {
		for _, p := range answerOf(rec.Kind) {
			if p == nil || p.Inline || seen[p.Hash] {
				continue
			}
			seen[p.Hash] = true
			if _, err := r.store.Size(p.Hash); err != nil {
				return fmt.Errorf("%w: record %d of %s (%s) names it", err, rec.Seq, r.path, rec.Kind.Name())
			}
		}
	}
	return nil
}

// lost lists the blobs that the tape names and that are not there, those of what the run wrote too.
func (r *recorded) lost() []string {
	lost := tape.LostIn(r.store)
	for _, rec := range r.records {
		lost.Record(rec)
	}
	return lost.List()
}

// answerOf lists the payloads of a record that a replay answers from, or knows by what it is asked for. What the run itself wrote is
// not among them.
func answerOf(k tape.Kind) []*tape.Payload {
	switch k := k.(type) {
	case *tape.ProcessSpawn:
		return []*tape.Payload{k.Stdout, k.Stderr}
	case *tape.FileWrite:
		if k.SpawnID != 0 { // a command's
			return []*tape.Payload{k.Content}
		}
		return nil
	case *tape.FileDelete, *tape.PolicyVerdict:
		return nil
	}
	return tape.Payloads(k)
}

// lostBlob reports whether err says that a blob is missing or damaged: an answer that cannot be looked at, which is no divergence.
func lostBlob(err error) bool {
	var missing *cas.MissingError
	var corrupt *cas.CorruptError
	return errors.As(err, &missing) || errors.As(err, &corrupt)
}
