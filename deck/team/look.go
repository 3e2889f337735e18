package team

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// LookOptions say what Look reads. Nil and zero work.
type LookOptions struct {
	Seq      *uint64                 // of the tape this record alone, and no other file than recording.json and notes
	Progress func(done, total int64) // bytes of the packed recording, where all of them are fetched
}

// Look makes a directory, which must not be there, of the run that an id, or the beginning of one, names: a recording of which each blob is
// fetched when it is first read (cas.Lend). Nothing is in it that was not checked: what the database says of the run has the digest of the table
// of its packed recording, and that those of its frames. A run that was pushed before there were tables is fetched whole. clean, which is not nil
// where err is nil, ends the fetching; the directory is the caller's.
func Look(ctx context.Context, s Access, project, id, dir string, o *LookOptions) (run *Run, clean func(), err error) {
	if o == nil {
		o = new(LookOptions)
	}
	if run, err = s.Find(ctx, project, id); err != nil {
		return nil, nil, err
	}
	clean = func() {}
	if run.Table.IsZero() {
		return run, clean, lookWhole(ctx, s, run, dir, o)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	l := &looked{ctx: ctx, dir: dir}
	l.view, err = packed.NewView(func(from, n int64) ([]byte, error) { return fetch(ctx, s, run, from, n) }, run.Size, run.Table)
	if err == nil {
		err = l.fill(run, o.Seq)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("the blob of %s: %w", run.ID, err), os.RemoveAll(dir))
	}
	if errors.Is(err, packed.ErrNoRanges) {
		return run, clean, lookWhole(ctx, s, run, dir, o)
	}
	if err != nil {
		return nil, nil, err
	}
	return run, cas.Lend(filepath.Join(dir, recording.TapeName+tape.StoreSuffix), l), nil
}

// fetch reads a range of a run's packed recording.
func fetch(ctx context.Context, s Access, run *Run, from, n int64) ([]byte, error) {
	r, err := s.Blob(ctx, run, from, n)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, n)
	got, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // what is missing the view tells
	}
	return b[:got], err
}

// lookWhole unpacks a run, all of which is fetched.
func lookWhole(ctx context.Context, s Access, run *Run, dir string, o *LookOptions) error {
	temp, err := recording.NewTemp(os.TempDir(), library.OpenPrefix)
	if err != nil {
		return err
	}
	defer temp.Remove()
	file := filepath.Join(temp.Dir, "packed")
	if _, err := s.Pull(ctx, run.Project, run.ID, file, o.Progress); err != nil {
		return err
	}
	_, err = library.Of(filepath.Dir(dir)).Unpack(ctx, file, &library.UnpackOptions{Output: dir})
	return err
}

// looked is a run that is looked at.
type looked struct {
	ctx  context.Context
	view *packed.View
	dir  string

	bringing sync.Mutex // held while blobs come
	bytes    int64      // of the entries that were written, as packed declares them; guarded by bringing once it is lent
	files    int64      // of them; so guarded, too
}

// take counts an entry before it is written: no more than a Reader takes of a whole file.
func (l *looked) take(e *packed.Entry) error {
	l.files++
	if l.files > maxFiles {
		return &packed.LimitError{What: "files", Have: l.files, Limit: maxFiles}
	}
	if e.Size > maxBytes-l.bytes {
		return &packed.LimitError{What: "bytes", Have: e.Size, Limit: maxBytes - l.bytes}
	}
	l.bytes += e.Size
	return nil
}

// The limits of take; tests have lower ones.
var maxBytes, maxFiles int64 = packed.DefaultMaxBytes, packed.DefaultMaxFiles

const blobs = recording.TapeName + tape.StoreSuffix + "/" // what the names of blobs begin with

// fill writes what is no blob, with a seq what belongs to that record.
func (l *looked) fill(run *Run, seq *uint64) (err error) {
	if seq == nil {
		err = l.view.Each(blobs, func(e *packed.Entry) error { return l.write(e) })
	} else {
		for _, name := range []string{recording.ManifestName, recording.TapeName + annotations.Suffix} {
			var e *packed.Entry
			if e, err = l.view.Open(name); err == nil {
				err = errors.Join(l.write(e), e.Close())
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err = l.record(*seq); errors.Is(err, fs.ErrNotExist) {
			err = nil // killed before its tape began
		}
	}
	if err != nil {
		return err
	}
	m, err := recording.ReadManifest(l.dir)
	if err == nil && m.ID != run.ID {
		err = fmt.Errorf("%w: it is another recording", packed.ErrDamaged)
	}
	return err
}

func (l *looked) write(e *packed.Entry) error {
	if err := l.take(e); err != nil {
		return err
	}
	path := filepath.FromSlash(e.Name)
	if !filepath.IsLocal(path) { // a device's name, on Windows
		return fmt.Errorf("%w: %q", packed.ErrName, e.Name)
	}
	path = filepath.Join(l.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, &library.Meter{Context: l.ctx, From: e, Count: func(int) {}})
	return errors.Join(err, f.Close())
}

// record writes a tape of one record, or of none where there is no such one.
func (l *looked) record(seq uint64) error {
	from, err := l.view.OpenTape(seq)
	if err != nil {
		return err
	}
	defer from.Close()
	header, err := l.header()
	if err != nil {
		return err
	}
	var in io.Reader = from
	if !from.Whole() {
		in = io.MultiReader(bytes.NewReader(header), from)
	}
	t, err := tape.NewReaderOptions(in, recording.TapeName, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	for rec, err := range t.Records() {
		if err = errors.Join(err, l.ctx.Err()); err != nil {
			return err
		}
		if rec.Seq == seq {
			header = append(tape.AppendRecord(header, rec), '\n')
		}
		if rec.Seq >= seq {
			break
		}
	}
	return os.WriteFile(filepath.Join(l.dir, recording.TapeName), header, 0o600)
}

// header is the tape's first line.
func (l *looked) header() ([]byte, error) {
	e, err := l.view.Open(recording.TapeName)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	line, err := bufio.NewReader(io.LimitReader(e, tape.MaxLine)).ReadBytes('\n')
	return line, recording.NotEOF(err)
}

// Bring implements cas.Lender.
func (l *looked) Bring(d cas.Digest, put func(r io.Reader) error) error {
	l.bringing.Lock()
	defer l.bringing.Unlock()
	name := blobs + d.String()
	there := recording.Exists(filepath.Join(l.dir, filepath.FromSlash(name))) // with another, perhaps, while this one waited
	if !there {
		err := l.view.Around(name, func(e *packed.Entry) error {
			there = there || e.Name == name
			return l.put(e, put)
		})
		if err != nil {
			return err
		}
	}
	if !there {
		return &cas.MissingError{Digest: d}
	}
	return nil
}

// All implements cas.Lender.
func (l *looked) All(put func(r io.Reader) error) error {
	l.bringing.Lock()
	defer l.bringing.Unlock()
	return l.view.Each("", func(e *packed.Entry) error { return l.put(e, put) })
}

// put keeps an entry, where it is a blob that is not there.
func (l *looked) put(e *packed.Entry, put func(r io.Reader) error) error {
	if err := l.ctx.Err(); err != nil || !strings.HasPrefix(e.Name, blobs) {
		return err
	}
	if recording.Exists(filepath.Join(l.dir, filepath.FromSlash(e.Name))) {
		return nil // and was counted
	}
	if err := l.take(e); err != nil {
		return err
	}
	return put(e)
}
