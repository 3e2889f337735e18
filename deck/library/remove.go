package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ownNames are what lies at the top of a recording's directory, beside temporary files; those of later versions, too.
var ownNames = []string{
	recording.ManifestName, recording.TapeName, recording.TapeName + tape.StoreSuffix, recording.PartName, recording.TreeName, recording.DiffName,
	"terminal", "session.jsonl", "seal.json", "seal.tiles", recording.TapeName + ".annotations.jsonl", recording.SeedName,
}

// A Removal is what Remove did.
type Removal struct {
	ID   string
	Left string // what stays, and why; "" where nothing does
	Log  string // the library's log of recordings, where that lists it: it will say that the recording is gone
}

// Remove deletes a recording and the pointers of the library that lead to it. A directory without a recording.json is never
// deleted, nor is a recording that is being made: the error then wraps ErrNotRecording or ErrLive.
//
// Only a recording's own files are deleted; a directory that holds others stays with these. A pointer is not believed: where
// it leads to anything but a recording of its id, the pointer alone goes. So does a link alone.
//
// The recording is renamed before anything of it is deleted, so that who is killed meanwhile leaves no half of one; GC
// takes away what is left.
func (l *Library) Remove(e *Entry) (*Removal, error) {
	out := &Removal{ID: e.Name}
	if e.Recording != nil {
		out.ID = e.Recording.Manifest.ID
		if e.Recording.Live() == recording.LiveYes {
			return nil, fmt.Errorf("%s %w: end its program first", e.Path, recording.ErrLive)
		}
	}
	path := filepath.Clean(e.Path)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, e.unpoint()
	case err != nil && e.pointer == "":
		return nil, err
	case e.pointer != "" && (err != nil || !info.IsDir() || e.Recording == nil || out.ID != e.Name):
		out.ID, out.Left = e.Name, fmt.Sprintf("only the pointer went: %s is no recording of that id", path)
		return out, e.unpoint()
	case info.Mode()&fs.ModeSymlink != 0:
		out.Left = fmt.Sprintf("only the link %s went, not what it leads to", path)
		return out, os.Remove(path)
	case !recording.Exists(filepath.Join(path, recording.ManifestName)):
		return nil, fmt.Errorf("%s: %w", path, recording.ErrNotRecording)
	}
	if listed, err := sealing.LoggedIn(l.SealLog(), out.ID); err == nil && listed {
		out.Log = l.SealLog()
	}
	pointers := l.pointersTo(info)
	others, err := foreign(path)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		out.Left = fmt.Sprintf("%s stays, for it holds what is no recording's: %s", path, strings.Join(others, ", "))
	}
	err = removeRecording(path, others)
	for _, p := range pointers {
		err = errors.Join(err, recording.Gone(os.Remove(p)))
	}
	return out, errors.Join(err, l.forget(e.Name), l.forget(out.ID))
}

func (e *Entry) unpoint() error {
	if e.pointer == "" {
		return nil
	}
	return recording.Gone(os.Remove(e.pointer))
}

func foreign(dir string) ([]string, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, recording.Gone(err)
	}
	var out []string
	for _, n := range names {
		found := strings.HasPrefix(n.Name(), recording.FoundPrefix) && strings.HasSuffix(n.Name(), ".json")
		if !found && !slices.Contains(ownNames, n.Name()) && !strings.HasPrefix(n.Name(), durable.TempPrefix) {
			out = append(out, n.Name())
		}
	}
	return out, nil
}

// trash is the name that a recording has while it is deleted.
func trash(dir string) string {
	return filepath.Join(filepath.Dir(dir), durable.TempPrefix+"rm-"+filepath.Base(dir))
}

// removeRecording deletes the directory of a recording but for others. Where it has some, or cannot be renamed,
// recording.json goes last: what is left of a recording is then one still, and can be deleted again.
func removeRecording(dir string, others []string) error {
	if len(others) == 0 {
		if err := os.Rename(dir, trash(dir)); err == nil {
			return os.RemoveAll(trash(dir))
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return recording.Gone(err)
	}
	for _, n := range names {
		if n.Name() != recording.ManifestName && !slices.Contains(others, n.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, n.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := recording.Gone(os.Remove(filepath.Join(dir, recording.ManifestName))); err != nil || len(others) > 0 {
		return err
	}
	return recording.Gone(os.Remove(dir))
}
