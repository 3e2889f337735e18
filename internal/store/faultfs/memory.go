package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a disk in memory that can lose its power. Reads see everything that was written, as they do through a page
// cache; PowerCut returns the disk as it may stand afterwards: what was synced is there, of the rest any part may be.
//
// The part is chosen as a journaling file system on a disk with sectors of 512 bytes may leave it: of what was written to a
// file since its last Sync each sector alone, new or as it was; changes of a file's size by Truncate in their
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

// sectorSize is what Memory keeps or loses whole, in bytes.
const sectorSize = 512

// An inode is a file of Memory, whatever its name. Memory's mutex guards it.
type inode struct {
	live    []byte   // what is read
	disk    []byte   // what is durable
	pending []change // since then, in order
	perm    fs.FileMode
}

// A change is one write to a file, or with nil data one change of its size.
type change struct {
	at   int64 // or the new size
	data []byte
}

func resized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size] // what stood behind does not come back
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// write returns b with a change made.
func (c change) write(b []byte) []byte {
	if end := c.at + int64(len(c.data)); end > int64(len(b)) {
		b = resized(b, end)
	}
	copy(b[c.at:], c.data)
	return b
}

func (c change) to(b []byte) []byte {
	if c.data == nil {
		return resized(b, c.at)
	}
	return c.write(b)
}

func (f *inode) change(c change) {
	f.live = c.to(f.live)
	f.pending = append(f.pending, c)
}

func (f *inode) resize(size int64) { f.change(change{at: size}) }

func (f *inode) sync() {
	for _, c := range f.pending {
		f.disk = c.to(f.disk)
	}
	f.pending = nil
}

// cut returns the bytes as a loss of power may leave them.
func (f *inode) cut(r *rand.Rand) []byte {
	b := slices.Clone(f.disk)
	sizes := r.IntN(len(f.pending) + 1) // changes of size in order, up to any one
	luck := r.Float64()                 // of a sector
	for i, c := range f.pending {
		if c.data == nil {
			if i < sizes {
				b = c.to(b)
			}
			continue
		}
		for begin := int64(0); begin < int64(len(c.data)); {
			end := min(int64(len(c.data)), (c.at+begin)/sectorSize*sectorSize+sectorSize-c.at)
			if r.Float64() < luck {
				b = change{c.at + begin, c.data[begin:end]}.write(b)
			}
			begin = end
		}
	}
	return b
}

func (f *inode) info(name string) fs.FileInfo {
	return memoryInfo{filepath.Base(name), int64(len(f.live)), f.perm}
}

func dirInfo(name string) fs.FileInfo {
	return memoryInfo{filepath.Base(name), 0, fs.ModeDir | 0o700}
}

type memoryInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) Mode() fs.FileMode  { return i.mode }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memoryInfo) Sys() any           { return nil }

// A handle is an open file of Memory.
type handle struct {
	disk     *Memory
	inode    *inode
	name     string
	at       int64
	atEnd    bool // O_APPEND
	readOnly bool
	closed   bool
}

func (h *handle) Name() string { return h.name }

// with calls do under the disk's mutex, where the file is open.
func (h *handle) with(op string, writes bool, do func() (int, error)) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	switch {
	case h.closed:
		return 0, pathError(op, h.name, fs.ErrClosed)
	case writes && h.readOnly:
		return 0, pathError(op, h.name, errReadOnly)
	}
	return do()
}

func (h *handle) readAt(b []byte, at int64) (int, error) {
	if at >= int64(len(h.inode.live)) {
		return 0, io.EOF
	}
	n := copy(b, h.inode.live[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	return h.with("read", false, func() (int, error) { return h.readAt(b, at) })
}

func (h *handle) Read(b []byte) (int, error) {
	return h.with("read", false, func() (int, error) {
		n, err := h.readAt(b, h.at)
		h.at += int64(n)
		if n > 0 {
			err = nil
		}
		return n, err
	})
}

func (h *handle) writeAt(b []byte, at int64) (int, error) {
	if len(b) > 0 {
		h.inode.change(change{at, slices.Clone(b)})
	}
	return len(b), nil
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	return h.with("write", true, func() (int, error) { return h.writeAt(b, at) })
}

func (h *handle) Write(b []byte) (int, error) {
	return h.with("write", true, func() (int, error) {
		if h.atEnd {
			h.at = int64(len(h.inode.live))
		}
		n, err := h.writeAt(b, h.at)
		h.at += int64(n)
		return n, err
	})
}

func (h *handle) Stat() (info fs.FileInfo, err error) {
	_, err = h.with("stat", false, func() (int, error) { info = h.inode.info(h.name); return 0, nil })
	return info, err
}

func (h *handle) Truncate(size int64) error {
	_, err := h.with("truncate", true, func() (int, error) { h.inode.resize(size); return 0, nil })
	return err
}

func (h *handle) Sync() error {
	_, err := h.with("sync", false, func() (int, error) { h.inode.sync(); return 0, nil })
	return err
}

func (h *handle) Close() error {
	_, err := h.with("close", false, func() (int, error) { h.closed = true; return 0, nil })
	return err
}
