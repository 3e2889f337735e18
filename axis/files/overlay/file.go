package overlay

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

func (h *File) mayWrite() bool { return h.flag&accessMode != os.O_RDONLY }
func (h *File) mayRead() bool  { return h.flag&accessMode != os.O_WRONLY }

// keep keeps what the file holds before its first change through h. It is called under mu.
func (h *File) keep() (err error) {
	if h.dirty || h.f.rec == nil {
		return nil
	}
	if h.n != nil && h.n.pending != nil {
		h.f.flush(h.n.pending)
	}
	p := h.at
	if p.up = h.n; p.up == nil {
		if p, err = h.f.walk(h.at.path, askChange, false); err != nil {
			return err
		}
	}
	h.before, err = h.f.contentOf(&p)
	return err
}

// pend says that the file was changed through h. It is called under mu.
func (h *File) pend() {
	h.dirty, h.changed, h.n.pending = true, true, h
}

// own brings the file of h into the upper layer. It is called under mu.
func (h *File) own() error {
	if h.n != nil {
		return nil
	}
	p, err := h.f.walk(h.at.path, askChange, false)
	switch {
	case err != nil:
		return err
	case p.mode == 0: // removed meanwhile: nobody else sees it
		h.n = &node{mode: files.Regular | 0o644, data: h.snap, opens: 1}
		return h.f.grow(h.n.size())
	}
	if err := h.f.lift(&p); err != nil {
		return err
	}
	h.n = p.up
	h.n.opens++
	return nil
}

// A File is an open file or directory. What it writes is seen by all at once; on a tape it is one file_write, when it is closed.
type File struct {
	f    *FS
	name string
	flag int

	mu     sync.Mutex
	at     place  // as it was opened
	n      *node  // of the upper layer; nil while the file lies in the lower one alone
	snap   []byte // the content, once it was read, while n is nil
	off    int64
	list   []entry // what ReadDir has not given yet
	listed bool
	read   bool // a file_read is recorded
	noted  bool // something of it is recorded
	// What follows is guarded by tree.mu.
	dirty   bool   // it was changed through this File, and that is not recorded
	before  []byte // what stood there then; nil of a new file
	changed bool   // it was dirty once
	closed  bool
}

// start locks h for an operation, which may is whether it was opened for.
func (h *File) start(op string, may bool) error {
	h.mu.Lock()
	switch {
	case h.closed:
		h.mu.Unlock()
		return failure(op, h.name, errClosed)
	case !may:
		h.mu.Unlock()
		return failure(op, h.name, errNotOpened)
	}
	return nil
}

// Read implements io.Reader.
func (h *File) Read(b []byte) (int, error) {
	if err := h.start("read", h.mayRead()); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	n, err := h.readAt(b, h.off)
	h.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (h *File) ReadAt(b []byte, off int64) (int, error) {
	if err := h.start("read", h.mayRead()); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	if off < 0 {
		return 0, failure("read", h.name, errNegative)
	}
	n, err := h.readAt(b, off)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// readAt copies what stands at off. The error is io.EOF at the end.
func (h *File) readAt(b []byte, off int64) (int, error) {
	if h.at.mode.IsDir() {
		return 0, failure("read", h.name, errIsDir)
	}
	if err := h.load(); err != nil {
		return 0, err
	}
	h.f.mu.RLock()
	defer h.f.mu.RUnlock()
	data := h.data()
	if off >= int64(len(data)) {
		if len(b) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	return copy(b, data[off:]), nil
}

// data is the content, once it is known. It is called under tree.mu.
func (h *File) data() []byte {
	if h.n != nil {
		return h.n.data
	}
	return h.snap
}

// load has the content be known, and recorded once.
func (h *File) load() error {
	if h.read {
		return nil
	}
	all, err := h.whole()
	if err != nil {
		h.f.told(err)
		return err
	}
	h.read, h.noted = true, true
	if h.f.rec == nil {
		return nil
	}
	if err := h.f.noteDue(); err != nil {
		return err
	}
	return h.f.noteRead(h.at.path, all, h.at.mode)
}

// whole is the content; a copy where it is to be recorded.
func (h *File) whole() ([]byte, error) {
	lock := h.f.looking()
	lock.Lock()
	defer lock.Unlock()
	if h.n == nil {
		_, b, err := h.f.readAt(h.at.path)
		h.snap = b
		if err != nil {
			return nil, failure("read", h.name, err)
		}
		return b, nil
	}
	if h.f.rec == nil {
		return nil, nil
	}
	return cloned(h.n.data), nil
}

// Seek implements io.Seeker. A directory is read again from its first name by Seek(0, io.SeekStart).
func (h *File) Seek(offset int64, whence int) (int64, error) {
	if err := h.start("seek", true); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	if h.at.mode.IsDir() {
		if offset != 0 || whence != io.SeekStart {
			return 0, failure("seek", h.name, errIsDir)
		}
		h.list, h.listed = nil, false
		return 0, nil
	}
	switch whence {
	case io.SeekCurrent:
		offset += h.off
	case io.SeekEnd:
		size, err := h.size()
		if err != nil {
			return 0, err
		}
		offset += size
	}
	if offset < 0 {
		return 0, failure("seek", h.name, errNegative)
	}
	h.off = offset
	return offset, nil
}

// size is the length of the file now: an input, which is recorded.
func (h *File) size() (int64, error) {
	i, err := h.info()
	if err != nil {
		return 0, err
	}
	return i.Size(), nil
}

// Stat implements fs.File.
func (h *File) Stat() (fs.FileInfo, error) {
	if err := h.start("stat", true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	return h.info()
}

// info says what the file is now.
func (h *File) info() (fs.FileInfo, error) {
	h.noted = true
	if h.n == nil {
		i, err := h.f.stat("stat", h.at.path, false)
		if err != nil {
			return nil, err
		}
		named := *i.(*info)
		named.name = h.f.infoOf(h.name, &h.at).name
		return &named, nil
	}
	h.f.mu.RLock()
	p := h.at
	p.look, p.up = h.n.seen(), h.n
	i := h.f.infoOf(h.name, &p)
	h.f.mu.RUnlock()
	if h.f.rec != nil {
		return i, h.f.noteStat(&p)
	}
	return i, nil
}

// Write implements io.Writer.
func (h *File) Write(b []byte) (int, error) {
	if err := h.start("write", h.mayWrite()); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	off := h.off
	n, err := h.change(func() error {
		if h.flag&os.O_APPEND != 0 {
			off = int64(len(h.n.data))
		}
		return h.put(b, off)
	}, len(b))
	if n > 0 {
		h.off = off + int64(n)
	}
	return n, err
}

// WriteAt implements io.WriterAt, but of a file that was opened with O_APPEND. What lies between the end and off is filled with zeros.
func (h *File) WriteAt(b []byte, off int64) (int, error) {
	if err := h.start("write", h.mayWrite() && h.flag&os.O_APPEND == 0); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	if off < 0 {
		return 0, failure("write", h.name, errNegative)
	}
	return h.change(func() error { return h.put(b, off) }, len(b))
}

// Truncate makes the file size bytes long.
func (h *File) Truncate(size int64) error {
	if err := h.start("truncate", h.mayWrite()); err != nil {
		return err
	}
	defer h.mu.Unlock()
	if size < 0 {
		return failure("truncate", h.name, errNegative)
	}
	_, err := h.change(func() error { return h.resize(size) }, 0)
	return err
}

// change has fn change the file of the upper layer. It returns n where that worked.
func (h *File) change(fn func() error, n int) (int, error) {
	now := h.f.now()
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	err := h.own()
	if err == nil {
		err = h.keep()
	}
	if err == nil {
		err = fn()
	}
	if err != nil {
		return 0, failure("write", h.name, err)
	}
	h.pend()
	h.n.mtime = now
	return n, nil
}

// put writes b at off. It is called under tree.mu.
func (h *File) put(b []byte, off int64) error {
	if off > h.f.maxFile-int64(len(b)) {
		return tooMuch(h.f.maxFile)
	}
	if end := off + int64(len(b)); end > int64(len(h.n.data)) {
		if err := h.resize(end); err != nil {
			return err
		}
	}
	copy(h.n.data[off:], b)
	return nil
}

// resize makes the content size bytes long. It is called under tree.mu.
func (h *File) resize(size int64) error {
	if size > h.f.maxFile {
		return tooMuch(h.f.maxFile)
	}
	n := h.n
	if err := h.f.grow(size - int64(len(n.data))); err != nil {
		return err
	}
	if size <= int64(len(n.data)) {
		clear(n.data[size:])
		n.data = n.data[:size]
		return nil
	}
	n.data = append(n.data, make([]byte, size-int64(len(n.data)))...)
	return nil
}

// Sync does nothing: there is no disk.
func (h *File) Sync() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (h *File) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := h.start("readdir", true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	if !h.at.mode.IsDir() {
		return nil, failure("readdir", h.name, errNoDir)
	}
	if !h.listed {
		_, all, err := h.f.list("readdir", h.at.path)
		if err != nil {
			return nil, err
		}
		h.list, h.listed, h.noted = all, true, true
	}
	take := len(h.list)
	if n > 0 {
		take = min(n, take)
		if take == 0 {
			return nil, io.EOF
		}
	}
	out := h.f.dirEntries(h.at.path, h.list[:take])
	h.list = h.list[take:]
	return out, nil
}

// Close ends the File: what it changed since that was recorded last is recorded now, under the name that the file has by then, unless
// it has none any more. Of one that was neither read nor asked nor changed a file_stat is recorded, for it was found.
func (h *File) Close() error {
	if err := h.start("close", true); err != nil {
		return err
	}
	defer h.mu.Unlock()
	h.closed = true
	h.f.mu.Lock()
	changed := h.changed
	h.f.flush(h)
	h.end()
	h.f.mu.Unlock()
	switch {
	case h.f.rec == nil:
		return nil
	case !changed && !h.noted:
		return h.f.noteStat(&h.at)
	}
	return h.f.noteDue()
}

// end lets the node go. It is called under tree.mu.
func (h *File) end() {
	if h.n == nil {
		return
	}
	h.n.opens--
	if h.n.opens == 0 && h.n.dir == nil && h.n != h.f.top {
		h.f.used -= h.n.size()
	}
}
