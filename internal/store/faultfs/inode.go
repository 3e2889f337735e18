package faultfs

import (
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"
)

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

func (h *handle) Allocate(size int64) error {
	_, err := h.with("allocate", true, func() (int, error) {
		h.inode.resize(max(size, int64(len(h.inode.live))))
		return 0, nil
	})
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
