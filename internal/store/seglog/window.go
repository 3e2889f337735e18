package seglog

import (
	"errors"
	"fmt"
	"io"
)

// A window reads a file in large pieces, mostly from front to back.
type window struct {
	f     io.ReaderAt
	limit int64 // nothing is read from there on
	at    int64 // where in the file buf begins
	buf   []byte
	have  int // bytes of buf that are read
}

const windowSize = 256 << 10

// view returns the n bytes at a place, which end at the limit or before; they are valid until the next call. Where the file
// is shorter it fails with errNoBlock.
func (w *window) view(at int64, n int) ([]byte, error) {
	if at >= w.at && at+int64(n) <= w.at+int64(w.have) {
		return w.buf[at-w.at:][:n], nil
	}
	if at+int64(n) > w.limit {
		return nil, io.ErrUnexpectedEOF
	}
	if want := max(n, windowSize); len(w.buf) < want {
		w.buf = make([]byte, want)
	} else if len(w.buf) > 2*want && len(w.buf) > 4<<20 {
		w.buf = make([]byte, want) // one long record does not stay in memory for ever
	}
	w.at, w.have = at, 0
	got, err := w.f.ReadAt(w.buf[:min(int64(len(w.buf)), w.limit-at)], at)
	w.have = got
	if got >= n {
		return w.buf[:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil, &errNoBlock{fmt.Errorf("the file ends at byte %d", at+int64(got))}
	}
	return nil, fmt.Errorf("at byte %d: %w", at, err)
}

// block returns the block at a place whole and checked, and what its header says. The salt and prev are those that it must
// have. It fails with errNoBlock where none stands there and with errors of reading.
func (w *window) block(at int64, salt *[8]byte, want blockWanted) ([]byte, blockInfo, error) {
	h, err := w.header(at, salt, want)
	if err != nil {
		return nil, h, err
	}
	b, err := w.view(at, int(h.size()))
	if err != nil {
		return nil, h, err
	}
	if err := checkBlock(b, &h); err != nil {
		return nil, h, &errNoBlock{err}
	}
	return b, h, nil
}

// blockWanted is what a block must say of itself to stand behind the one before.
type blockWanted struct {
	first Pos
	prev  uint32
}

// header returns the header of the block at a place. The body may be anything, but it is within the limit.
func (w *window) header(at int64, salt *[8]byte, want blockWanted) (blockInfo, error) {
	if w.limit-at < blockHeader {
		return blockInfo{}, &errNoBlock{errors.New("too short for a block")}
	}
	b, err := w.view(at, blockHeader)
	if err != nil {
		return blockInfo{}, err
	}
	h, err := decodeBlock(b, salt)
	switch {
	case err != nil:
	case h.first != want.first:
		err = fmt.Errorf("a block that begins with record %d expected, here begins %d", want.first, h.first)
	case h.prev != want.prev:
		err = errors.New("the block follows another one than stands before it")
	case h.size() > w.limit-at:
		err = fmt.Errorf("a block of %d bytes begins here, %d are left", h.size(), w.limit-at)
	}
	if err != nil {
		return h, &errNoBlock{err}
	}
	return h, nil
}

// errNoBlock says why what stands at a place is no block.
type errNoBlock struct{ reason error }

func (e *errNoBlock) Error() string { return e.reason.Error() }
