package faultfs

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Memory is a disk in memory that can lose its power. Reads see everything that was written, as they do through a page
// cache; PowerCut returns the disk as it may stand afterwards: what was synced is there, of the rest any part may be.
//
// The part is chosen as a journaling file system on a disk with sectors of 512 bytes may leave it: of what was written to a
// file since its last Sync each sector alone, new or as it was; changes of a file's size by Truncate and Allocate in their
// order, up to any one; names in their order, up to any one since the last SyncDir. Directories themselves are never lost.
type Memory struct {
	mu    sync.Mutex // guards everything, the files' bytes too
	dirs  map[string]bool
	names map[string]*inode
	disk  map[string]*inode // the names that are durable
	moves []move            // what happened to names since, in order
}

// A move is a change of names. From is empty for a new name, to for a removed one.
type move struct {
	from, to string
	file     *inode
}

// NewMemory returns an empty disk.
func NewMemory() *Memory {
	return &Memory{dirs: map[string]bool{}, names: map[string]*inode{}, disk: map[string]*inode{}}
}

func apply(names map[string]*inode, m move) {
	delete(names, m.from)
	if m.to != "" {
		names[m.to] = m.file
	}
}

func (m *Memory) moved(mv move) {
	apply(m.names, mv)
	m.moves = append(m.moves, mv)
}

// OpenFile is os.OpenFile of regular files.
func (m *Memory) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	switch {
	case f == nil && flag&os.O_CREATE == 0, f == nil && !m.dirs[filepath.Dir(name)]:
		return nil, pathError("open", name, fs.ErrNotExist)
	case f != nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, fs.ErrExist)
	case f == nil:
		f = &inode{perm: perm}
		m.moved(move{"", name, f})
	case flag&os.O_TRUNC != 0:
		f.resize(0)
	}
	return &handle{disk: m, inode: f, name: name, atEnd: flag&os.O_APPEND != 0, readOnly: flag&(os.O_WRONLY|os.O_RDWR) == 0}, nil
}

// Rename is os.Rename of regular files.
func (m *Memory) Rename(from, to string) error {
	from, to = filepath.Clean(from), filepath.Clean(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[from] == nil {
		return pathError("rename", from, fs.ErrNotExist)
	}
	m.moved(move{from, to, m.names[from]})
	return nil
}

// Remove is os.Remove of regular files.
func (m *Memory) Remove(name string) error {
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	m.moved(move{name, "", nil})
	return nil
}

// MkdirAll is os.MkdirAll.
func (m *Memory) MkdirAll(name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name = filepath.Clean(name); !m.dirs[name]; name = filepath.Dir(name) {
		m.dirs[name] = true
	}
	return nil
}

// ReadDir is os.ReadDir.
func (m *Memory) ReadDir(name string) ([]fs.DirEntry, error) {
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[name] {
		return nil, pathError("readdir", name, fs.ErrNotExist)
	}
	var entries []fs.DirEntry
	for path, f := range m.names {
		if filepath.Dir(path) == name {
			entries = append(entries, fs.FileInfoToDirEntry(f.info(path)))
		}
	}
	for path := range m.dirs {
		if filepath.Dir(path) == name && path != name {
			entries = append(entries, fs.FileInfoToDirEntry(dirInfo(path)))
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Stat is os.Stat.
func (m *Memory) Stat(name string) (fs.FileInfo, error) {
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.names[name]; f != nil {
		return f.info(name), nil
	}
	if m.dirs[name] {
		return dirInfo(name), nil
	}
	return nil, pathError("stat", name, fs.ErrNotExist)
}

// SyncDir makes the names in a directory durable.
func (m *Memory) SyncDir(name string) error {
	name = filepath.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[name] {
		return pathError("sync", name, fs.ErrNotExist)
	}
	var others []move
	for _, mv := range m.moves {
		if filepath.Dir(mv.from) == name || filepath.Dir(mv.to) == name {
			apply(m.disk, mv)
		} else {
			others = append(others, mv)
		}
	}
	m.moves = others
	return nil
}

// SyncAll makes everything durable.
func (m *Memory) SyncAll(string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.names {
		f.sync()
	}
	m.disk, m.moves = maps.Clone(m.names), nil
	return nil
}

// Drop makes the disk forget, as a kernel does when a sync fails, that bytes of a file are still to be written: they are
// read as before, the next Sync leaves them alone, and a PowerCut loses them.
func (m *Memory) Drop(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.names[filepath.Clean(name)]; f != nil {
		f.pending = slices.DeleteFunc(f.pending, func(c change) bool { return c.data != nil })
	}
}

// PowerCut returns the disk as it may stand after a loss of power now. This one stays as it is.
func (m *Memory) PowerCut(r *rand.Rand) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := maps.Clone(m.disk)
	for _, mv := range m.moves[:r.IntN(len(m.moves)+1)] {
		apply(names, mv)
	}
	after := NewMemory()
	after.dirs = maps.Clone(m.dirs)
	for name, f := range names {
		b := f.cut(r)
		after.names[name] = &inode{live: b, disk: slices.Clone(b), perm: f.perm}
	}
	after.disk = maps.Clone(after.names)
	return after
}

// Kill returns the disk as a process finds it that begins when one that used this disk is killed now: nothing is lost, and
// nothing more is durable. This one stays as it is, and whoever uses it does no harm to the other.
func (m *Memory) Kill() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := map[*inode]*inode{nil: nil}
	copied := func(f *inode) *inode {
		if _, ok := copies[f]; !ok {
			copies[f] = &inode{slices.Clone(f.live), slices.Clone(f.disk), slices.Clone(f.pending), f.perm}
		}
		return copies[f]
	}
	after := NewMemory()
	after.dirs = maps.Clone(m.dirs)
	for name, f := range m.names {
		after.names[name] = copied(f)
	}
	for name, f := range m.disk {
		after.disk[name] = copied(f)
	}
	for _, mv := range m.moves {
		after.moves = append(after.moves, move{mv.from, mv.to, copied(mv.file)})
	}
	return after
}

func pathError(op, name string, err error) error { return &os.PathError{Op: op, Path: name, Err: err} }

var errReadOnly = errors.New("the file is open for reading alone")
