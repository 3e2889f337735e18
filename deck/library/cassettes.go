package library

import (
	"errors"
	"fmt"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cassetteExt is the ending of a terminal cassette in the library.
const cassetteExt = ".cassette"

// ErrNoCassette is returned where a name fits no cassette, and where a recording has none.
var ErrNoCassette = errors.New("no such cassette")

// NewCassette returns the id of a new cassette and the directory where it is to lie: in the library, which is made, or at
// output where that is not "".
func (l *Library) NewCassette(output string) (id, dir string, err error) {
	id = recording.NewID(time.Now())
	if output != "" {
		dir, err = filepath.Abs(output)
		return id, dir, err
	}
	return id, filepath.Join(l.Dir, id+cassetteExt), l.ensure(false)
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
	var fits []libraryCassette
	for _, c := range all {
		if c.id == name {
			return c.dir, nil
		}
		if name != "" && strings.HasPrefix(c.id, name) {
			fits = append(fits, c)
		}
	}
	switch len(fits) {
	case 0:
		return "", l.noCassette(name)
	case 1:
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
