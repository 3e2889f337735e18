package faultfs

import (
	"io/fs"
	"os"
)

// An Op names a call of FS or File.
type Op string

// The calls that a Hook sees. Reads of an open file are OpRead, both forms of writing are OpWrite.
const (
	OpOpen     Op = "open"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpMkdir    Op = "mkdir"
	OpReadDir  Op = "readdir"
	OpStat     Op = "stat"
	OpSyncDir  Op = "syncdir"
	OpSyncAll  Op = "syncall"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpSync     Op = "sync"
	OpClose    Op = "close"
)

// A Call is one call that is about to happen.
type Call struct {
	Op   Op
	Name string // the file or directory; of a rename the new name
	Size int    // bytes to read or write
	// Keep is how much of a write happens all the same when the call is failed: a disk that becomes full in the middle, or a
	// short write. At most Size.
	Keep int
}

// Hook is an FS that asks Before ahead of every call of Inner. An error fails the call, which then does not happen (but for
// Keep). Before is called by many goroutines at the same time.
type Hook struct {
	Inner  FS
	Before func(*Call) error
}

func (h *Hook) ask(op Op, name string) error { return h.Before(&Call{Op: op, Name: name}) }

// OpenFile asks with OpOpen.
func (h *Hook) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if err := h.ask(OpOpen, name); err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := h.Inner.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &hookedFile{File: f, hook: h}, nil
}

// Rename asks with OpRename and the new name.
func (h *Hook) Rename(from, to string) error {
	if err := h.ask(OpRename, to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return h.Inner.Rename(from, to)
}

// Remove asks with OpRemove.
func (h *Hook) Remove(name string) error {
	return h.path(OpRemove, name, func() error { return h.Inner.Remove(name) })
}

// MkdirAll asks with OpMkdir.
func (h *Hook) MkdirAll(name string, perm fs.FileMode) error {
	return h.path(OpMkdir, name, func() error { return h.Inner.MkdirAll(name, perm) })
}

// ReadDir asks with OpReadDir.
func (h *Hook) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = h.path(OpReadDir, name, func() (err error) { entries, err = h.Inner.ReadDir(name); return err })
	return entries, err
}

// Stat asks with OpStat.
func (h *Hook) Stat(name string) (info fs.FileInfo, err error) {
	err = h.path(OpStat, name, func() (err error) { info, err = h.Inner.Stat(name); return err })
	return info, err
}

// SyncDir asks with OpSyncDir.
func (h *Hook) SyncDir(name string) error {
	return h.path(OpSyncDir, name, func() error { return h.Inner.SyncDir(name) })
}

// SyncAll asks with OpSyncAll.
func (h *Hook) SyncAll(name string) error {
	return h.path(OpSyncAll, name, func() error { return h.Inner.SyncAll(name) })
}

func (h *Hook) path(op Op, name string, call func() error) error {
	if err := h.ask(op, name); err != nil {
		return &os.PathError{Op: string(op), Path: name, Err: err}
	}
	return call()
}

type hookedFile struct {
	File
	hook *Hook
}

func (f *hookedFile) Read(b []byte) (int, error) {
	return f.transfer(OpRead, b, f.File.Read)
}

func (f *hookedFile) ReadAt(b []byte, at int64) (int, error) {
	return f.transfer(OpRead, b, func(b []byte) (int, error) { return f.File.ReadAt(b, at) })
}

func (f *hookedFile) Write(b []byte) (int, error) {
	return f.transfer(OpWrite, b, f.File.Write)
}

func (f *hookedFile) WriteAt(b []byte, at int64) (int, error) {
	return f.transfer(OpWrite, b, func(b []byte) (int, error) { return f.File.WriteAt(b, at) })
}

func (f *hookedFile) transfer(op Op, b []byte, do func([]byte) (int, error)) (int, error) {
	call := &Call{Op: op, Name: f.Name(), Size: len(b)}
	failed := f.hook.Before(call)
	if failed == nil {
		return do(b)
	}
	n := 0
	if keep := min(call.Keep, len(b)); op == OpWrite && keep > 0 {
		n, _ = do(b[:keep]) // the error of the call is the hook's
	}
	return n, &os.PathError{Op: string(op), Path: f.Name(), Err: failed}
}

func (f *hookedFile) Truncate(size int64) error {
	return f.hook.path(OpTruncate, f.Name(), func() error { return f.File.Truncate(size) })
}

func (f *hookedFile) Sync() error {
	return f.hook.path(OpSync, f.Name(), f.File.Sync)
}

func (f *hookedFile) Close() error {
	err := f.hook.path(OpClose, f.Name(), func() error { return nil })
	if closed := f.File.Close(); err == nil { // a failed close closes all the same
		err = closed
	}
	return err
}
