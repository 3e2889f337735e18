package files

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A program changes files as a watched program does: it tells a journal first, by the descriptor of the directory.
type program struct {
	t     testing.TB
	j     *Journal
	store cas.Store
	tape  []*tape.Record
}

// newProgram begins a journal of the roots dirs.
func newProgram(t testing.TB, o *JournalOptions, roots ...JournalRoot) *program {
	t.Helper()
	p := &program{t: t, store: o.Store}
	for i := range roots {
		if roots[i].Root != nil {
			continue
		}
		root, err := os.OpenRoot(roots[i].Dir)
		must(t, err)
		t.Cleanup(func() { root.Close() })
		roots[i].Root = root
	}
	p.j = NewJournal(roots, o)
	return p
}

// touch tells the journal of a call.
func (p *program) touch(t Touch, paths ...string) {
	p.t.Helper()
	must(p.t, p.tryTouch(t, paths...))
}

func (p *program) tryTouch(t Touch, paths ...string) error {
	for _, path := range paths {
		path = real(path, false)
		fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil //nolint:nilerr // the call fails by itself
		}
		defer unix.Close(fd)
		t.Paths = append(t.Paths, TouchedPath{Path: path, Dir: fd, Name: filepath.Base(path)})
	}
	if then := p.j.Touch(&t); then != nil {
		return then()
	}
	return nil
}

// real returns path without symbolic links, but for the last name where it is not to be followed.
func real(path string, follow bool) string {
	for range 40 {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return path
		}
		path = filepath.Join(dir, filepath.Base(path))
		to, err := os.Readlink(path)
		if err != nil || !follow {
			return path
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path
}

func (p *program) write(path, text string) error {
	p.touch(Touch{Ends: true}, real(path, true))
	return os.WriteFile(path, []byte(text), 0o644)
}

func (p *program) chmod(path string, mode os.FileMode) error {
	p.touch(Touch{}, real(path, true))
	return os.Chmod(path, mode)
}

func (p *program) mkdir(path string) error {
	p.touch(Touch{}, path)
	return os.Mkdir(path, 0o755)
}

func (p *program) remove(path string) error {
	p.touch(Touch{Ends: true}, path)
	return os.Remove(path)
}

func (p *program) symlink(target, path string) error {
	p.touch(Touch{}, path)
	return os.Symlink(target, path)
}

func (p *program) link(old, path string) error {
	p.touch(Touch{Link: true}, old, path)
	return os.Link(old, path)
}

func (p *program) rename(old, path string) error {
	p.touch(Touch{Rename: true, Ends: true}, old, path)
	return unix.Rename(old, path) // that of package os replaces no directory
}

func (p *program) exchange(a, b string) error {
	p.touch(Touch{Exchange: true}, a, b)
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// take puts records onto the tape and returns what they say: a sign, the path, and the content where it stands there.
func (p *program) take(records iter.Seq2[tape.Record, error]) (out []string) {
	p.t.Helper()
	var paths []string
	for rec, err := range records {
		must(p.t, err)
		rec.Seq = uint64(len(p.tape))
		p.tape = append(p.tape, &rec)
		out = append(out, said(&rec))
		paths = append(paths, recordFile(&rec).Path)
	}
	ended := 1 // states that ended come first
	for ended < len(paths) && paths[ended-1] <= paths[ended] {
		ended++
	}
	if ended < len(paths) && !slices.IsSorted(paths[ended:]) {
		p.t.Errorf("not sorted: %q", paths)
	}
	return out
}

func recordFile(rec *tape.Record) *tape.File {
	if k, ok := rec.Kind.(*tape.FileDelete); ok {
		return &k.File
	}
	return &rec.Kind.(*tape.FileWrite).File
}

// said returns "+ path was > is", where "was > " may be missing, or "- path was".
func said(rec *tape.Record) string {
	f := recordFile(rec)
	text := func(p *tape.Payload) string {
		if !p.Inline {
			return p.Hash.Short()
		}
		return p.Text
	}
	out := "+ " + f.Path
	if f.Content == nil {
		out = "- " + f.Path
	}
	if f.Before != nil {
		out += " " + text(f.Before)
		if f.Content != nil {
			out += " >"
		}
	}
	if f.Content != nil {
		out += " " + text(f.Content)
	}
	if f.IsPlace() {
		out += " " + f.Mode
	}
	if tape.FieldValue(f.Extra, wholeKey) != nil {
		out += " (whole)"
	}
	if isIgnoredRecord(f) {
		out += " (ignored)"
	}
	return out
}

// records returns the tape as After takes it.
func (p *program) records() iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for _, r := range p.tape {
			if !yield(r, nil) {
				return
			}
		}
	}
}
