package process

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A place is a directory in which one command after the other works. Who took it has it alone.
type place struct {
	dir       string
	unchanged func(a, b fs.FileInfo) bool
	seen      map[string]sighting // the files, as they were when they were looked at last
}

// A sighting is what a file was, and when.
type sighting struct {
	info  fs.FileInfo
	entry entry
	first time.Time // when info was taken for the first time
	read  time.Time // when the content was, the last time
}

// settled is how long after a file was seen first a look into it holds for as long as its times stay: file systems stamp with a clock that
// ticks, and what changes a file within a tick leaves no other time.
const settled = 100 * time.Millisecond

// sure reports whether the file would show another time if it had changed since it was read.
func (s *sighting) sure() bool { return s.read.Sub(s.first) >= settled }

// maxChanged bounds, in bytes, what a command may leave behind: all of it stands in memory, and on the tape.
const maxChanged = 256 << 20

// entry is a file or a link as it stood.
type entry struct {
	digest cas.Digest // of a file's content
	perm   fs.FileMode
	target string // of a link
	dir    bool
	empty  bool // of a directory: nothing stands in it
}

// entries lists what stands in the place, by paths with /. What is no file, directory or link is an error.
func (p *place) entries() (map[string]entry, error) {
	out, seen := make(map[string]entry), make(map[string]sighting)
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == p.dir {
			return err
		}
		name, err := filepath.Rel(p.dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !utf8.ValidString(name) {
			return fmt.Errorf("the name %q is not UTF-8, which the files of a testbench cannot hold", name)
		}
		e, err := p.entryOf(path, name, d, seen)
		if err != nil {
			return err
		}
		out[name] = e
		if up := filepath.ToSlash(filepath.Dir(filepath.FromSlash(name))); up != "." {
			out[up] = entry{dir: true} // which is not empty
		}
		return nil
	})
	p.seen = seen
	return out, err
}

// entryOf is what stands at a path. What is known of files goes to seen.
func (p *place) entryOf(path, name string, d fs.DirEntry, seen map[string]sighting) (entry, error) {
	switch sort := d.Type(); {
	case sort.IsDir():
		return entry{dir: true, empty: true}, nil
	case sort&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return entry{target: filepath.ToSlash(target)}, err
	case !sort.IsRegular():
		return entry{}, fmt.Errorf("%s is neither a file nor a directory or link (%s), which the files of a testbench cannot hold", name, sort)
	}
	info, err := d.Info()
	if err != nil {
		return entry{}, err
	}
	now := time.Now()
	s := sighting{info: info, first: now, read: now}
	if was, known := p.seen[name]; known && p.unchanged != nil && p.unchanged(was.info, info) {
		if s.first = was.first; was.sure() {
			seen[name] = was
			return was.entry, nil
		}
	}
	if s.entry, err = fileOf(path); err != nil {
		return entry{}, err
	}
	seen[name] = s
	return s.entry, nil
}

// fileOf reads a file.
func fileOf(path string) (entry, error) {
	f, err := os.Open(path) //nolint:gosec // below a directory of ours
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return entry{}, err
	}
	h := cas.NewHasher()
	if _, err := io.Copy(h, f); err != nil {
		return entry{}, err
	}
	return entry{digest: h.Sum(), perm: permOf(st)}, nil
}

// permOf is the mode of a file as Git knows it.
func permOf(st fs.FileInfo) fs.FileMode {
	if !onWindows && st.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// same reports whether a path stands as it stood before. Of directories only those count that are gone or that nothing tells of else.
func same(before map[string]entry, name string, now entry, there bool) bool {
	was, stood := before[name]
	switch {
	case !there:
		return !stood
	case now.dir:
		return stood && was.dir || !now.empty
	}
	return stood && was == now
}

// changes lists how the place differs from what stood there before, by path.
func (p *place) changes(before map[string]entry) ([]Change, error) {
	after, err := p.entries()
	if err != nil {
		return nil, err
	}
	var out []Change
	var size int64
	all := make(map[string]entry, len(after))
	maps.Copy(all, before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		now, there := after[name]
		if same(before, name, now, there) {
			continue
		}
		c := Change{Path: name, Deleted: !there, Dir: now.dir, Perm: now.perm, Target: now.target}
		if there && !now.dir && c.Target == "" {
			if c.Content, err = os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name))); err != nil { //nolint:gosec // ours
				return nil, err
			}
		}
		if size += int64(len(c.Content)); size > maxChanged {
			return nil, fmt.Errorf("more than %d bytes of changed files", maxChanged)
		}
		out = append(out, c)
	}
	return out, nil
}
