package deck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// scratchBase is the directory that holds the layers of all runs of this user, outside every one of dirs: an overlay's
// upper layer must not lie in its lower one.
func scratchBase(dirs []string) (string, error) {
	name := fmt.Sprintf("tapedeck-%d", os.Getuid())
	for _, root := range library.ScratchRoots {
		base := filepath.Join(root, name)
		if containing(dirs, base) != "" {
			continue
		}
		if err := os.MkdirAll(base, 0o700); err != nil {
			continue
		}
		if st, err := os.Lstat(base); err == nil && st.IsDir() && recording.OwnedByUs(st) {
			return base, os.Chmod(base, 0o700)
		}
	}
	return "", fmt.Errorf("no place for layers outside %s: tried %s", strings.Join(dirs, ", "), strings.Join(library.ScratchRoots, ", "))
}

func containing(dirs []string, path string) string {
	for _, d := range dirs {
		if recording.Within(path, d) {
			return d
		}
	}
	return ""
}

// A scratch is a directory for the layers of one run. Its lock is the kernel's: it goes with the process, so that what a
// killed run left is known by it.
type scratch struct{ *recording.Temp }

// newScratch makes a scratch outside dirs, and removes those that killed runs left. It must be removed.
func newScratch(id string, dirs []string) (*scratch, error) {
	base, err := scratchBase(dirs)
	if err != nil {
		return nil, err
	}
	library.Sweep()
	temp, err := recording.NewTemp(base, id+"-")
	return &scratch{temp}, err
}

// remove deletes the scratch; a nil one is none.
func (s *scratch) remove() {
	if s != nil && s.Temp != nil {
		library.OpenLayers(s.Dir)
		_ = s.Remove() // what stays the next command removes
	}
}

// upperOf is the upper layer of the overlay whose layers lie in dir.
func upperOf(dir string) string { return filepath.Join(dir, "upper") }

// overlayOver returns the overlay that shows lowers at target and keeps what is written in scratch, which it makes.
func overlayOver(target, scratch string, lowers ...string) (jail.Overlay, error) {
	o := jail.Overlay{Target: target, Lowers: lowers, Upper: upperOf(scratch), Work: filepath.Join(scratch, "work")}
	err := errors.Join(os.MkdirAll(o.Upper, 0o700), os.MkdirAll(o.Work, 0o700))
	// The merged directory has the upper one's mode and time: they must be the target's own, or the program sees others.
	if st, errStat := os.Stat(target); err == nil && errStat == nil {
		err = errors.Join(os.Chmod(o.Upper, st.Mode().Perm()|st.Mode()&(os.ModeSticky|os.ModeSetgid)),
			os.Chtimes(o.Upper, time.Time{}, st.ModTime()))
	}
	return o, err
}

// over returns overlays over dirs, each of which shows its directory as it is.
func (s *scratch) over(dirs []string) (out []jail.Overlay, err error) {
	for i, d := range dirs {
		o, err := overlayOver(d, filepath.Join(s.Dir, strconv.Itoa(i)), d)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// masksFor lists what no program inside may see: the keys, and the user's runtime directory with its sockets.
func masksFor(config string, env []string) []string {
	out := []string{recording.ConfigDir(config)}
	if run := recording.Resolved(recording.Getenv(env, "XDG_RUNTIME_DIR")); run != "" {
		out = append(out, run)
	}
	return out
}
