package mcp

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
)

// An end is one direction of a file. Those of a pipe have one, a socket may have two. Closing an end closes the file once no other end of it
// is open. A nil end is closed.
type end struct {
	file *endFile
	once sync.Once   // closes
	left atomic.Bool // closed as something that is read
}

// An endFile is the file of one end or two.
type endFile struct {
	f        *os.File
	socket   bool
	watching bool      // gone works, where it is of one direction
	both     bool      // it is of two directions, whatever is open of them
	id       [2]uint64 // of a socket: which

	mu   sync.Mutex
	open int // ends
}

// newEnd returns an end of f, which becomes its own.
func newEnd(f *os.File) (*end, error) {
	if f == nil {
		return nil, errors.New("mcp: a relay wants all four files of stdin and stdout")
	}
	file, err := newEndFile(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	file.open = 1
	return &end{file: file}, nil
}

// endPair returns the ends of a side, which may be one socket.
func endPair(there, back *os.File) (a, b *end, err error) {
	if a, err = newEnd(there); back == there {
		return a, a.other(), err
	}
	b, errBack := newEnd(back)
	if b.sameSocket(a) { // by another descriptor
		b.close()
		b = a.other()
	}
	return a, b, errors.Join(err, errBack)
}

// other returns the other direction of the same file.
func (e *end) other() *end {
	if e == nil {
		return nil
	}
	e.file.open, e.file.both = 2, true
	return &end{file: e.file}
}

// sameSocket reports whether e and f are one socket.
func (e *end) sameSocket(f *end) bool {
	return e != nil && f != nil && e.file.socket && e.file.id == f.file.id
}

// Read implements io.Reader.
func (e *end) Read(b []byte) (int, error) { return e.file.f.Read(b) }

func (e *end) write(b []byte) (int, error) { return e.file.f.Write(b) }

// closeRead says that nothing more is read here: who writes there gets EPIPE.
func (e *end) closeRead() {
	if e != nil {
		e.left.Store(true)
	}
	e.closeOne(true)
}

// closeReadWhole is closeRead as Leave does it.
func (e *end) closeReadWhole() {
	if !e.file.watching || e.file.both {
		e.closeRead()
		return
	}
	leave(e.file.f, e.closeRead)
}

// Leave closes f, which a client writes to, and returns when nobody reads there any more who only had it as a child of ours that is being
// forked: the client, which sees the end of what it reads behind that, is to find by then that it cannot write.
func Leave(f *os.File) { leave(f, func() { f.Close() }) }

// closeWrite says that nothing more comes: who reads there gets the end.
func (e *end) closeWrite() { e.closeOne(false) }

func (e *end) closeOne(reads bool) {
	if e == nil {
		return
	}
	e.once.Do(func() {
		e.file.mu.Lock()
		defer e.file.mu.Unlock()
		if e.file.open--; e.file.open > 0 {
			e.file.shut(reads)
			return
		}
		e.file.f.Close()
	})
}

// close closes the file, whatever else is open of it.
func (e *end) close() {
	if e != nil {
		e.file.f.Close()
	}
}
