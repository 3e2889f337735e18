package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

const (
	libraryName  = ".tapedeck"
	recordingExt = ".rec"
	pointerExt   = ".elsewhere" // a file in the library that holds the path of a recording made with -o
)

// A Library is the .tapedeck directory of a work tree: the recordings made there, and pointers to those that were put
// elsewhere. The zero of it does not exist on disk until the first recording.
type Library struct {
	Dir string // absolute path of .tapedeck
}

// An Entry is one recording of a library. Err says why it cannot be opened; then Recording is nil.
type Entry struct {
	Name      string
	Path      string
	Recording *recording.Recording
	Err       error

	pointer string // path of the pointer that led to Path; "" for what lies in the library, or was named by its path
}

// An AmbiguousError says that a prefix fits several recordings.
type AmbiguousError struct {
	Name  string
	Found []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q fits %d recordings: %s", e.Name, len(e.Found), strings.Join(e.Found, ", "))
}

// ErrNoRecording is returned where a name fits no recording.
var ErrNoRecording = errors.New("no such recording")

// Of returns the library of the work tree root.
func Of(root string) *Library { return &Library{Dir: filepath.Join(root, libraryName)} }

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

// Place makes the directory of a new recording, in the library or at output, and claims it: it is the recorder's until the file
// is closed. One at output needs no library: who looks for it by its id needs point.
func (l *Library) Place(id, output string, sync bool) (dir string, claimed *os.File, err error) {
	if dir, err = l.PathOf(id, output); err == nil && output == "" {
		err = l.ensure(sync)
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

// Point remembers a recording that lies elsewhere.
func (l *Library) Point(id, path string, sync bool) error {
	if filepath.Dir(path) == l.Dir {
		return nil
	}
	if err := l.ensure(sync); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(l.Dir, id+pointerExt), []byte(path+"\n"), &durable.Options{Mode: 0o644, Sync: sync})
}

// Hidden lists what no program may see and no snapshot takes: the library, the recordings that it knows elsewhere, and
// dir.
func (l *Library) Hidden(dir string) []string {
	out := []string{l.Dir, dir}
	names, err := os.ReadDir(l.Dir)
	if err != nil {
		return out
	}
	for _, n := range names {
		if path, ok := l.pointed(n.Name()); ok {
			out = append(out, path)
		}
	}
	return out
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
	for _, n := range names {
		if e, ok := l.entry(n.Name()); ok {
			out = append(out, e)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].started().Before(out[j].started()) })
	return out, nil
}

// entry opens what the name in the library stands for; ok is false for a name that is no recording's.
func (l *Library) entry(name string) (Entry, bool) {
	var e Entry
	switch {
	case strings.HasSuffix(name, recordingExt):
		e = Entry{Name: strings.TrimSuffix(name, recordingExt), Path: filepath.Join(l.Dir, name)}
	case strings.HasSuffix(name, pointerExt):
		path, ok := l.pointed(name)
		if !ok {
			return Entry{}, false
		}
		e = Entry{Name: strings.TrimSuffix(name, pointerExt), Path: path, pointer: filepath.Join(l.Dir, name)}
	default:
		return Entry{}, false
	}
	e.Recording, e.Err = recording.Open(e.Path)
	return e, true
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
	if name == "last" {
		return newest(entries, l.Dir)
	}
	return byPrefix(entries, name, l.Dir)
}

func newest(entries []Entry, dir string) (*Entry, error) {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Recording != nil {
			return &entries[i], nil
		}
	}
	return nil, fmt.Errorf("last: %w: %s holds none", ErrNoRecording, dir)
}

func byPrefix(entries []Entry, name, dir string) (*Entry, error) {
	var fits []*Entry
	for i := range entries {
		e := &entries[i]
		if e.Name == name {
			return e, nil
		}
		if name != "" && strings.HasPrefix(e.Name, name) {
			fits = append(fits, e)
		}
	}
	switch len(fits) {
	case 0:
		return nil, fmt.Errorf("%s: %w: it is no path, and no id in %s begins so", name, ErrNoRecording, dir)
	case 1:
		return fits[0], nil
	}
	amb := &AmbiguousError{Name: name}
	for _, e := range fits {
		amb.Found = append(amb.Found, e.Name)
	}
	return nil, amb
}

// sealLogName is the default log of recordings, in the library.
const sealLogName = "log"

// SealLog is the directory of the library's log of recordings.
func (l *Library) SealLog() string { return filepath.Join(l.Dir, sealLogName) }

// StatCacheName is the file of a library that says which blobs hold the files of its work tree.
const StatCacheName = "statcache"
