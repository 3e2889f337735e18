package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/derive"
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
	return out, errors.Join(err, forget(filepath.Join(l.Dir, e.Name)), forget(filepath.Join(l.Dir, out.ID)))
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

// newPrefix begins the name of the directory in which a recording is made that is to supersede one beside it. Who makes it holds its lock.
const newPrefix = durable.TempPrefix + "new-"

// Beside returns a name for what is to supersede the recording at path, on its file system. done removes what stands there then.
func Beside(path string) (made string, done func(), err error) {
	temp, err := recording.NewTemp(filepath.Dir(path), newPrefix)
	if err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(filepath.Join(temp.Dir, ".gitignore"), []byte("*\n"), 0o644); err != nil { // of one that is killed nothing is committed
		return "", nil, errors.Join(err, temp.Remove())
	}
	return filepath.Join(temp.Dir, "made"), func() { _ = temp.Remove() }, nil
}

// MaySucceed says what forbids that another recording takes the place of old; nil for nothing. The error wraps ErrLive for one that is
// being recorded; notes of people about its records forbid it too, and a log of sealed recordings that lists it.
func (l *Library) MaySucceed(old *recording.Recording) error {
	notes := filepath.Base(old.TapePath()) + ".annotations.jsonl"
	switch {
	case old.Live() == recording.LiveYes:
		return fmt.Errorf("%s %w", old.Dir, recording.ErrLive)
	case recording.Exists(filepath.Join(old.Dir, notes)):
		return fmt.Errorf("%s has notes (tapedeck annotate), which are of its records: put %s away first", old.Dir, notes)
	}
	m := old.Manifest
	for _, of := range []*Library{l, Of(m.Roots.LibraryRoot(m.Cwd))} {
		listed, err := sealing.LoggedIn(of.SealLog(), m.ID)
		if err != nil {
			return fmt.Errorf("whether the log of sealed recordings lists %s cannot be told: %w", m.ID, err)
		}
		if listed {
			return fmt.Errorf("%s stands in the log of sealed recordings, which would say that it was changed: record another", m.ID)
		}
	}
	return nil
}

// Succeed makes the unsealed recording at made the next of the name of old: it gets its id, and no parent. The error is that of MaySucceed,
// or the file system's.
func (l *Library) Succeed(old *recording.Recording, made string) (*recording.Recording, error) {
	if err := l.MaySucceed(old); err != nil {
		return nil, err
	}
	rec, err := recording.Open(made)
	if err != nil {
		return nil, err
	}
	m := rec.Manifest
	if err := renameRun(filepath.Join(made, derive.SessionLogName), m.ID, old.Manifest.ID); err != nil {
		return nil, err
	}
	m.Seed, m.ID, m.Parent = m.SeededBy(), old.Manifest.ID, nil
	return rec, m.Write(made, false)
}

// renameRun has a session log, where there is one, name another run.
func renameRun(path, from, to string) error {
	log, err := os.ReadFile(path)
	if err != nil {
		return recording.Gone(err)
	}
	name := func(id string) []byte { return fmt.Appendf(nil, `"run_id":%q`, id) }
	return durable.WriteFile(path, bytes.ReplaceAll(log, name(from), name(to)), &durable.Options{Mode: 0o644})
}

// Supersede puts the recording that Succeed made ready in the place of old, which is deleted but for what is no recording's: that stays
// where it is, once the new one is on the disk. made must lie on the file system of old, as Beside has it. After an error old stands where it stood or, where the error says
// so, beside it under a name that ends in keptSuffix, and is never at made.
func Supersede(old, made *recording.Recording) error {
	others, err := foreign(old.Dir)
	if err != nil {
		return err
	}
	if err := toDisk(made.Dir); err != nil {
		return err
	}
	if err := exchange(made.Dir, old.Dir); err != nil {
		return err
	}
	if err := moveAll(others, made.Dir, old.Dir); err != nil {
		if back := exchange(made.Dir, old.Dir); back != nil {
			return errors.Join(err, back, keep(made.Dir, old.Dir))
		}
		return err
	}
	if err := durable.SyncDir(filepath.Dir(old.Dir)); err != nil {
		return errors.Join(err, keep(made.Dir, old.Dir))
	}
	_ = removeRecording(made.Dir, nil) // what stays is below a temporary name
	return nil
}

// SupersedePacked puts the recording that Succeed made ready, packed, in the place of the packed file: all of it, or after an error nothing.
func SupersedePacked(ctx context.Context, file string, made *recording.Recording) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	was, err := os.Stat(file)
	if err != nil {
		return err
	}
	temp, done, err := Beside(file)
	if err != nil {
		return err
	}
	defer done()
	if _, err := Pack(ctx, made, temp, nil); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(temp, was.Mode().Perm()), durable.SyncFile(temp)); err != nil {
		return err
	}
	if err := os.Rename(temp, file); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(file))
}

// toDisk brings every file and name below dir to the disk.
func toDisk(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return durable.SyncDir(path)
		case d.Type().IsRegular():
			return durable.SyncFile(path)
		}
		return nil
	})
}

// keptSuffix ends the name of a recording that could not be put back to its own.
const keptSuffix = ".kept"

// keep gives the old recording, which stands at from, a name beside its own that nobody cleans up. The error, never nil, says where it is.
func keep(from, to string) error {
	if err := renameNew(from, to+keptSuffix); err != nil {
		return err
	}
	return fmt.Errorf("the recording that stood at %s is at %[1]s%s now", to, keptSuffix)
}

// moveAll moves names from one directory to another: all, or after an error none.
func moveAll(names []string, from, to string) error {
	for i, name := range names {
		if err := renameNew(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return errors.Join(err, moveAll(names[:i], to, from))
		}
	}
	return nil
}

// exchangeByTurns is exchange by three renames. Who is killed between them leaves what stood at to under a name that nobody cleans up.
func exchangeByTurns(from, to string) error {
	aside := to + keptSuffix
	if err := os.Rename(to, aside); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(aside, to))
	}
	if err := os.Rename(aside, from); err != nil {
		return fmt.Errorf("what stood at %s is at %s now: %w", to, aside, err)
	}
	return nil
}

// ScratchRoots are the places for overlay layers, best first: on a disk, and outside what programs usually write to.
var ScratchRoots = []string{"/var/tmp", "/tmp", "/dev/shm"}

// Sweep removes the temporary directories that killed commands of this user left outside any library: layers of runs,
// certificates, what was unpacked to be looked at. Those of commands that run stay. Every command begins with it.
func Sweep() {
	young := func(string) bool { return false }
	for _, root := range ScratchRoots {
		for _, dir := range staleScratches(root, young) {
			_ = removeScratch(dir) // what cannot go is tried again by the next one
		}
	}
	recording.RemoveStale(recording.StaleTemps(os.TempDir(), tempPrefixes...))
}

// tempPrefixes begin the names of what is locked in the temporary directory: the certificates of a run outside the jail, packed
// recordings that are being looked at, and end states that are being checked.
var tempPrefixes = []string{ProxyPrefix, OpenPrefix, CheckPrefix}

// The beginnings of their names.
const (
	ProxyPrefix = "tapedeck-proxy-" // of the certificates of a run outside the jail
	OpenPrefix  = "tapedeck-open-"
	CheckPrefix = "tapedeck-check-" // of the work tree as a run left it
)

// staleScratches lists the scratches under root that nobody holds; where there are no locks, those that are ancient.
func staleScratches(root string, ancient func(string) bool) []string {
	base := filepath.Join(root, fmt.Sprintf("tapedeck-%d", os.Getuid()))
	if st, err := os.Lstat(base); err != nil || !st.IsDir() || !recording.OwnedByUs(st) {
		return nil
	}
	names, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		dir := filepath.Join(base, n.Name())
		if !n.IsDir() {
			continue
		}
		f, err := recording.LockExclusive(dir)
		if err == nil {
			f.Close()
		}
		if err == nil || errors.Is(err, recording.ErrNoLocks) && ancient(dir) {
			out = append(out, dir)
		}
	}
	return out
}

// removeScratch deletes a scratch. The error is ErrHeld where somebody has taken it since.
func removeScratch(dir string) error {
	f, err := recording.LockExclusive(dir)
	if err != nil && !errors.Is(err, recording.ErrNoLocks) {
		return recording.Gone(err)
	}
	defer recording.Unlock(f)
	OpenLayers(dir)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("%s could not be deleted: check who owns what lies in it: %w", dir, err)
	}
	return nil
}

// OpenLayers has the directory of a run's layers be such that it can be removed. The kernel leaves directories there that their owner may
// not enter.
func OpenLayers(dir string) {
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

// A diskUse is what the files below a directory take, in bytes of their contents: recordings share blobs by hard links,
// and removing one name of several frees nothing.
type diskUse struct {
	total int64
	files int
	names map[recording.Inode]int // names below the directory, of files that have several
}

// measure counts everything below dir, which may be absent.
func measure(dir string) (*diskUse, error) {
	u := &diskUse{names: make(map[recording.Inode]int)}
	err := walkFiles(dir, func(info os.FileInfo) {
		u.files++
		id, several := recording.LinkedInode(info)
		if several {
			u.names[id]++
		}
		if !several || u.names[id] == 1 {
			u.total += info.Size()
		}
	})
	return u, err
}

// release takes away what a file or directory takes, and returns how many files that is and what removing it frees. n is
// -1 where it is not there.
func (u *diskUse) release(path string) (n int, freed int64, err error) {
	if !recording.Exists(path) {
		return -1, 0, nil
	}
	err = walkFiles(path, func(info os.FileInfo) {
		n++
		if id, several := recording.LinkedInode(info); several {
			if u.names[id]--; u.names[id] > 0 {
				return
			}
			delete(u.names, id)
		}
		freed += info.Size()
	})
	u.total = max(0, u.total-freed) // what came since it was measured is not in it
	return n, freed, err
}

// walkFiles calls visit for everything below path that is no directory. What vanishes meanwhile is not visited.
func walkFiles(path string, visit func(os.FileInfo)) error {
	return filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return recording.Gone(err)
		}
		if e.IsDir() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return recording.Gone(err)
		}
		visit(info)
		return nil
	})
}
