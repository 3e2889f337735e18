// Package library is .tapedeck, the directory of a work tree that holds its recordings and cassettes, and pointers to those that
// lie elsewhere: it finds, lists and removes them, takes away what none of them needs, makes one file of a recording and back.
//
// Goals: it is safe beside recorders, replays and other commands; nothing outside of the library is touched that is not a
// recording of it; what is there is never replaced. Not goals: what stands in a recording.
package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Name is what the library of a work tree is called there.
const Name = ".tapedeck"

const (
	recordingExt = ".rec"
	pointerExt   = ".elsewhere" // a file in the library that holds the path of a recording made with -o
)

// A Library is the .tapedeck directory of a work tree: the recordings made there, and pointers to those that were put
// elsewhere. The zero of it does not exist on disk until the first recording.
type Library struct {
	Dir string // absolute path of .tapedeck
}

// An Entry is one recording of a library. Err says why it cannot be opened; then Recording is nil. What List gives is opened as
// recording.OpenHead does it.
type Entry struct {
	Name      string
	Path      string
	Recording *recording.Recording
	Err       error

	pointer string          // path of the pointer that led to Path; "" for what lies in the library, or was named by its path
	beside  map[string]bool // all names of the library, of which some are derived of this one
}

// An AmbiguousError says that a prefix, or an id, fits several recordings.
type AmbiguousError struct {
	Name  string
	Found []string // their ids, or the paths of those that have the same
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q fits %d recordings: %s", e.Name, len(e.Found), strings.Join(e.Found, ", "))
}

// ErrNoRecording is returned where a name fits no recording.
var ErrNoRecording = errors.New("no such recording")

// Of returns the library of the work tree root.
func Of(root string) *Library { return &Library{Dir: filepath.Join(root, Name)} }

// At returns the library of the work tree that holds dir, the process's own working directory when empty.
func At(dir string) (*Library, error) {
	dir, err := recording.WorkingDir(dir)
	if err != nil {
		return nil, err
	}
	roots, _, err := recording.FindRoots(dir, "", os.Environ())
	if err != nil {
		return nil, err
	}
	return Of(roots.LibraryRoot(dir)), nil
}

// Make makes the library where it is not there.
func (l *Library) Make() error { return l.ensure(false) }

// ensure makes the library, with a .gitignore that keeps it out of commits.
func (l *Library) ensure(sync bool) error {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return fmt.Errorf("the library of recordings: %w: name a place elsewhere with -o", err)
	}
	ignore := filepath.Join(l.Dir, ".gitignore")
	if _, err := os.Lstat(ignore); err == nil {
		return nil
	}
	if err := durable.WriteFile(ignore, []byte("*\n"), &durable.Options{Mode: 0o644, Sync: sync}); err != nil {
		return err
	}
	return syncDir(filepath.Dir(l.Dir), sync)
}

// ensureAround makes the library that path lies in, whichever that is: one that is named by -o is as it would be without. Of a path
// elsewhere it does nothing.
func ensureAround(path string, sync bool) error {
	if dir := filepath.Dir(path); filepath.Base(dir) == Name {
		return (&Library{Dir: dir}).ensure(sync)
	}
	return nil
}

// Place makes the directory of a new recording, in the library or at output, and claims it: it is the recorder's until the file
// is closed. One at output needs no library: who looks for it by its id needs point.
func (l *Library) Place(id, output string, sync bool) (dir string, claimed *os.File, err error) {
	if dir, err = l.PathOf(id, output); err == nil {
		err = ensureAround(dir, sync)
	}
	if err != nil {
		return "", nil, err
	}
	if claimed, err = recording.Claim(dir); err != nil {
		return "", nil, err
	}
	if err := syncDir(filepath.Dir(dir), sync); err != nil {
		claimed.Close()
		return "", nil, err
	}
	return dir, claimed, nil
}

// PathOf is the directory of a recording: in the library, or at output.
func (l *Library) PathOf(id, output string) (string, error) {
	if output == "" {
		return filepath.Join(l.Dir, id+recordingExt), nil
	}
	return filepath.Abs(output)
}

func syncDir(dir string, sync bool) error {
	if !sync {
		return nil
	}
	return durable.SyncDir(dir)
}

// Point remembers a recording that lies elsewhere, and forgets those that lay there before it.
func (l *Library) Point(id, path string, sync bool) error {
	if filepath.Dir(path) == l.Dir && filepath.Ext(path) == recordingExt {
		return nil
	}
	if err := l.ensure(sync); err != nil {
		return err
	}
	for name, to := range l.pointers() {
		if to == path && name != id+pointerExt {
			_ = os.Remove(filepath.Join(l.Dir, name)) // gc has it else
		}
	}
	return durable.WriteFile(filepath.Join(l.Dir, id+pointerExt), []byte(path+"\n"), &durable.Options{Mode: 0o644, Sync: sync})
}

// Hidden lists what no program may see and no snapshot takes: the library, the recordings that it knows elsewhere, and
// dir.
func (l *Library) Hidden(dir string) []string {
	out := []string{l.Dir, dir}
	for _, path := range l.pointers() {
		out = append(out, path)
	}
	return out
}

// Later lists the recordings elsewhere that were first made after that of an id.
func (l *Library) Later(id string) (paths []string) {
	second := id[:min(len(id), len("20060102-150405"))]
	began := l.beganAt(id)
	for name, path := range l.pointers() {
		switch {
		case name < second:
		case !strings.HasPrefix(name, second), !began.IsZero() && beganAt(path).After(began):
			paths = append(paths, path)
		}
	}
	return paths
}

// pointers are the names of files that say where a recording lies, in order, with the paths that they hold.
func (l *Library) pointers() iter.Seq2[string, string] {
	return func(yield func(name, path string) bool) {
		names, _ := os.ReadDir(l.Dir) // one that cannot be read knows none
		for _, n := range names {
			if path, ok := l.pointed(n.Name()); ok && !yield(n.Name(), path) {
				return
			}
		}
	}
}

// beganAt is when the recording of an id began; zero where that is not known.
func (l *Library) beganAt(id string) time.Time {
	if path, ok := l.pointed(id + pointerExt); ok {
		return beganAt(path)
	}
	return beganAt(filepath.Join(l.Dir, id+recordingExt))
}

func beganAt(dir string) time.Time {
	m, err := recording.ReadManifest(dir)
	if err != nil {
		return time.Time{}
	}
	return m.StartedAt
}

func (l *Library) pointed(name string) (string, bool) {
	if !strings.HasSuffix(name, pointerExt) {
		return "", false
	}
	b, err := recording.ReadBounded(filepath.Join(l.Dir, name), 1<<16)
	path := strings.TrimSuffix(string(b), "\n")
	return path, err == nil && filepath.IsAbs(path)
}

// List returns the recordings, oldest first. A library that does not exist is empty.
func (l *Library) List() ([]Entry, error) {
	names, err := os.ReadDir(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Entry
	var dirs []string // of out, without links
	real, beside := recording.Resolved(l.Dir), make(map[string]bool, len(names))
	for _, n := range names {
		beside[n.Name()] = true
		e, ok := l.entry(n.Name())
		e.beside = beside
		switch {
		case !ok:
			continue
		case e.pointer == "" && n.IsDir():
			dirs = append(dirs, filepath.Join(real, n.Name()))
		default:
			dirs = append(dirs, recording.Resolved(e.Path))
		}
		out = append(out, e)
	}
	recording.Each(context.Background(), len(out), 0, func(i int) { out[i].Recording, out[i].Err = recording.OpenHead(dirs[i]) })
	sort.SliceStable(out, func(i, j int) bool { return out[i].started().Before(out[j].started()) })
	return out, nil
}

// entry is what the name in the library stands for, not opened; ok is false for a name that is no recording's.
func (l *Library) entry(name string) (Entry, bool) {
	switch filepath.Ext(name) {
	case recordingExt:
		return Entry{Name: strings.TrimSuffix(name, recordingExt), Path: filepath.Join(l.Dir, name)}, true
	case pointerExt:
		path, ok := l.pointed(name)
		return Entry{Name: strings.TrimSuffix(name, pointerExt), Path: path, pointer: filepath.Join(l.Dir, name)}, ok
	}
	return Entry{}, false
}

func (e *Entry) started() time.Time {
	if e.Recording == nil {
		return time.Time{}
	}
	return e.Recording.Manifest.StartedAt
}

// Find opens what name stands for: a path of a recording, "last", an id, or a unique prefix of one. The error wraps
// ErrNoRecording or ErrNotRecording, or is an *AmbiguousError.
func (l *Library) Find(name string) (*recording.Recording, error) {
	e, err := l.Entry(name)
	if err != nil {
		return nil, err
	}
	return e.Recording, e.Err
}

// Entry is Find for a recording that may be damaged or gone: its Err then says so.
func (l *Library) Entry(name string) (*Entry, error) {
	if recording.IsDir(name) {
		rec, err := recording.Open(name)
		return &Entry{Name: filepath.Base(name), Path: name, Recording: rec, Err: err}, nil
	}
	entries, err := l.List()
	if err != nil {
		return nil, err
	}
	find := byPrefix
	if name == "last" {
		find = newest
	}
	e, err := find(entries, name, l.Dir)
	if err == nil {
		e.Recording, e.Err = recording.Open(e.Path)
	}
	return e, err
}

func newest(entries []Entry, _, dir string) (*Entry, error) {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Recording != nil {
			return &entries[i], nil
		}
	}
	return nil, fmt.Errorf("last: %w: %s holds none", ErrNoRecording, dir)
}

func byPrefix(entries []Entry, name, dir string) (*Entry, error) {
	fits := fitting(entries, name, func(e *Entry) string { return e.Name })
	switch len(fits) {
	case 0:
		return nil, fmt.Errorf("%s: %w: it is no path, and no id in %s begins so", name, ErrNoRecording, dir)
	case 1:
		return fits[0], nil
	}
	amb := &AmbiguousError{Name: name}
	for _, e := range fits {
		if slices.ContainsFunc(fits, func(o *Entry) bool { return o != e && o.Name == e.Name }) { // a recording and its copy
			amb.Found = append(amb.Found, e.Path)
		} else {
			amb.Found = append(amb.Found, e.Name)
		}
	}
	return nil, amb
}

// fitting are those of all whose id is name or, where there are none, begins with it.
func fitting[T any](all []T, name string, id func(*T) string) (fits []*T) {
	exact := slices.ContainsFunc(all, func(t T) bool { return id(&t) == name })
	for i := range all {
		if of := id(&all[i]); of == name || !exact && name != "" && strings.HasPrefix(of, name) {
			fits = append(fits, &all[i])
		}
	}
	return fits
}

// sealLogName is the default log of recordings, in the library.
const sealLogName = "log"

// SealLog is the directory of the library's log of recordings.
func (l *Library) SealLog() string { return filepath.Join(l.Dir, sealLogName) }

// StatCacheName is the file of a library that says which blobs hold the files of its work tree.
const StatCacheName = "statcache"

// cassetteExt is the ending of a terminal cassette in the library.
const cassetteExt = ".cassette"

// ErrNoCassette is returned where a name fits no cassette, and where a recording has none.
var ErrNoCassette = errors.New("no such cassette")

// NewCassette returns the id of a new cassette and the directory where it is to lie: in the library, which is made, or at
// output where that is not "".
func (l *Library) NewCassette(output string) (id, dir string, err error) {
	id = recording.NewID(time.Now())
	if output == "" {
		output = filepath.Join(l.Dir, id+cassetteExt)
	}
	if dir, err = filepath.Abs(output); err == nil {
		err = ensureAround(dir, false)
	}
	return id, dir, err
}

// Cassette returns the directory of the cassette that name stands for: a path of a cassette, or of a recording, whose
// terminal/ is meant; the id of either, a unique prefix of one; "last" is the newest. The error wraps ErrNoCassette, is that of
// a recording which cannot be opened, or an *AmbiguousError. What it returns may be no cassette at all where a path was given.
func (l *Library) Cassette(name string) (string, error) {
	if st, err := os.Stat(name); err == nil {
		if st.IsDir() && HoldsRecording(name) {
			return inside(name)
		}
		return name, nil
	}
	found, err := l.cassettes()
	if err != nil {
		return "", err
	}
	if name == "last" {
		if len(found) == 0 {
			return "", fmt.Errorf("last: %w: %s holds none", ErrNoCassette, l.Dir)
		}
		return found[len(found)-1].dir, nil
	}
	return l.cassetteByPrefix(found, name)
}

// A libraryCassette is one that has an id in the library: its own, or that of the recording whose terminal it is.
type libraryCassette struct{ id, dir string }

// cassettes returns those of the library, oldest first: an id begins with its time.
func (l *Library) cassettes() ([]libraryCassette, error) {
	names, err := os.ReadDir(l.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []libraryCassette
	for _, n := range names {
		if id, ok := strings.CutSuffix(n.Name(), cassetteExt); ok {
			out = append(out, libraryCassette{id, filepath.Join(l.Dir, n.Name())})
			continue
		}
		path, ok := l.pointed(n.Name())
		if !ok {
			path = filepath.Join(l.Dir, n.Name())
		}
		if dir, err := inside(path); err == nil {
			out = append(out, libraryCassette{strings.TrimSuffix(n.Name(), filepath.Ext(n.Name())), dir})
		}
	}
	slices.SortStableFunc(out, func(a, b libraryCassette) int { return strings.Compare(a.id, b.id) })
	return out, nil
}

func (l *Library) cassetteByPrefix(all []libraryCassette, name string) (string, error) {
	fits := fitting(all, name, func(c *libraryCassette) string { return c.id })
	switch {
	case len(fits) == 0:
		return "", l.noCassette(name)
	case len(fits) == 1 || fits[0].id == name:
		return fits[0].dir, nil
	}
	amb := &AmbiguousError{Name: name}
	for _, c := range fits {
		amb.Found = append(amb.Found, c.id)
	}
	return "", amb
}

// noCassette says why name is none: a recording that fits may have no terminal.
func (l *Library) noCassette(name string) error {
	if e, err := l.Entry(name); err == nil {
		_, err := inside(e.Path)
		return err
	}
	return fmt.Errorf("%s: %w: it is no path, and no id in %s begins so", name, ErrNoCassette, l.Dir)
}

// CassetteNames returns the ids that Cassette takes, oldest first.
func (l *Library) CassetteNames() ([]string, error) {
	found, err := l.cassettes()
	out := make([]string, len(found))
	for i, c := range found {
		out[i] = c.id
	}
	return out, err
}

// HoldsRecording reports whether dir is that of a recording.
func HoldsRecording(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, recording.ManifestName))
	return err == nil
}

// inside is the cassette of the recording at path.
func inside(path string) (string, error) {
	dir := filepath.Join(path, recording.TerminalName)
	if recording.IsDir(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("%s: %w: its program had no terminal (tapedeck record --tty on gives it one)", path, ErrNoCassette)
}

// pointersTo lists the pointers to a directory.
func (l *Library) pointersTo(dir os.FileInfo) []string {
	names, err := os.ReadDir(l.Dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		path, ok := l.pointed(n.Name())
		if !ok {
			continue
		}
		if info, err := os.Stat(path); err == nil && os.SameFile(info, dir) {
			out = append(out, filepath.Join(l.Dir, n.Name()))
		}
	}
	return out
}

// GC removes what no recording of the library needs, and what killed runs of this user left in the scratch directories.
//
// It may run beside recorders, replays, other GCs and Remove: a recording that is being made is left alone, as its lock
// says (see Live), and so is one of which that cannot be known; of a finished one only such blobs and temporary files go
// that are older than the grace, and nobody adds to it any more. Recordings that lie elsewhere are left alone.
//
// A recording of which something was not read is kept whole, as Kept says: nobody knows what it needs. What is a link in
// the library leads out of it, and is left alone.
//
// An error means that something could not be looked at or removed; the report holds what was done nevertheless. It wraps
// ctx's error where that ended it: what had not been removed by then is there.
func (l *Library) GC(ctx context.Context, o *GCOptions) (*GCReport, error) {
	c := &collector{ctx: ctx, lib: l, now: time.Now(), out: &GCReport{Library: l.Dir, Removed: []Garbage{}, Kept: []Kept{}}}
	if o != nil {
		c.o = *o
	}
	if c.o.Grace == 0 {
		c.o.Grace = DefaultGrace
	}
	c.out.DryRun = c.o.DryRun
	return c.out, c.run()
}

// Rows returns what q chooses, oldest first.
func (l *Library) Rows(q *Query) ([]Row, error) {
	entries, err := l.List()
	if err != nil {
		return nil, err
	}
	rows, fits := make([]Row, len(entries)), make([]bool, len(entries))
	recording.Each(context.Background(), len(rows), 0, func(i int) {
		r := &rows[i]
		if r.Entry = entries[i]; r.Recording != nil && q.early(r.Recording.Manifest) {
			r.Totals, r.Verdict = r.totals(q.Known), r.verdict(l.Dir)
			fits[i] = q.fits(r)
		} else {
			fits[i] = r.Recording == nil && q.all()
		}
	})
	i := -1
	return slices.DeleteFunc(rows, func(Row) bool { i++; return !fits[i] }), nil
}
