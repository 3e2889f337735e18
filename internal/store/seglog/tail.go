package seglog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

// A tail finds and judges the end of the last segment.
type tail struct {
	window
	name    string
	segment *segmentInfo
	at      int64       // behind the last whole block
	want    blockWanted // of a block there
	why     error       // it is none
	extent  int64       // behind the last byte that is not zero; set by judge
}

// find goes over all whole blocks.
func (t *tail) find() error {
	t.at, t.want = segmentHeader, blockWanted{t.segment.first, t.segment.crc}
	for t.at < t.limit {
		_, h, err := t.block(t.at, &t.segment.salt, t.want)
		var none *errNoBlock
		if errors.As(err, &none) {
			t.why = none.reason
			return nil
		}
		if err != nil {
			return err
		}
		t.at += h.size()
		t.want = blockWanted{h.end(), h.self}
	}
	return nil
}

// judge looks at what stands behind the last whole block: nothing (nil, nil), a torn block (why it is one, nil), or damage.
func (t *tail) judge(m mark) (torn, damage error) {
	behind, err := t.search()
	if err != nil {
		return nil, err
	}
	if t.extent <= t.at {
		t.why = errors.New("the file ends here")
	}
	switch {
	case m.next > t.want.first:
		return nil, t.damaged("%w; records before %d were acknowledged, %d is the last one here", t.why, m.next, t.want.first-1)
	case behind != 0:
		return nil, t.damaged("%w; but a whole block stands at byte %d", t.why, behind)
	case t.extent <= t.at:
		return nil, nil
	}
	if torn, err = t.hole(); torn != nil || err != nil {
		return torn, err
	}
	return nil, t.damaged("%w; and no part of it is missing, as in a torn write. To go on without it and what follows, "+
		"cut a copy of the file off here", t.why)
}

func (t *tail) damaged(format string, args ...any) error {
	return &DamageError{t.name, t.at, fmt.Errorf(format, args...).Error()}
}

// search goes over everything behind the last whole block, for its extent and for another whole block: it returns where one
// begins, or 0.
func (t *tail) search() (behind int64, err error) {
	t.extent = t.at
	for at := t.at; at < t.limit; {
		b, err := t.view(at, int(min(windowSize, t.limit-at)))
		if err != nil {
			return 0, err
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			t.extent = at + int64(n)
		}
		next := at + int64(len(b))
		if next < t.limit {
			next -= blockHeader - 1 // one may begin in the last bytes
		}
		for _, i := range t.headers(b) {
			if whole, err := t.whole(at + i); whole || err != nil {
				return at + i, err
			}
		}
		at = next
	}
	return 0, nil
}

// headers returns where headers of blocks of this segment stand in b.
func (t *tail) headers(b []byte) []int64 {
	var found []int64
	for i := 0; ; i++ {
		n := bytes.Index(b[i:], blockMagic[:])
		if n < 0 || len(b)-i-n < blockHeader {
			return found
		}
		i += n
		if _, err := decodeBlock(b[i:], &t.segment.salt); err == nil {
			found = append(found, int64(i))
		}
	}
}

// whole says whether a block of this segment stands at a place.
func (t *tail) whole(at int64) (bool, error) {
	b, err := t.view(at, blockHeader)
	if err != nil {
		return false, err
	}
	h, err := decodeBlock(b, &t.segment.salt)
	if err != nil || h.size() > t.limit-at {
		return false, nil
	}
	if b, err = t.view(at, int(h.size())); err != nil {
		return false, err
	}
	return checkBlock(b, &h) == nil, nil
}

// hole says what is missing of the block behind the last whole one, or nil where nothing is.
func (t *tail) hole() (missing, err error) {
	n := int64(blockHeader)
	if t.extent-t.at < n {
		return errors.New("its header is not complete"), nil
	}
	b, err := t.view(t.at, int(n))
	if err != nil {
		return nil, err
	}
	if h, err := decodeBlock(b, &t.segment.salt); err == nil { // as long as it says
		n = h.size()
		if n > t.limit-t.at {
			return errors.New("the file ends within it"), nil
		}
		if t.extent-t.at < n {
			return errors.New("its end is missing"), nil
		}
		if b, err = t.view(t.at, int(n)); err != nil {
			return nil, err
		}
	}
	for begin := int64(0); begin < n; {
		end := min(n, (t.at+begin)/sector*sector+sector-t.at)
		if len(bytes.Trim(b[begin:end], "\x00")) == 0 {
			return fmt.Errorf("bytes %d to %d of it were never written", begin, end), nil
		}
		begin = end
	}
	return nil, nil
}

// A mark says how far records were acknowledged, at least. It is written without a sync: the death of the process leaves it
// exact, the loss of power leaves an older one. On disk:
//
//	 0  8  magic F5 't' 'd' 'm' 'a' 'r', version 1 (2 bytes)
//	 8  8  position of the first record of the last segment
//	16  8  where its last acknowledged block ends
//	24  8  position behind the last acknowledged record
//	32  4  crc of bytes 0 to 32
type mark struct {
	segment Pos
	at      int64
	next    Pos
}

const (
	markName = "mark"
	markSize = 36
)

var markMagic = [8]byte{0xf5, 't', 'd', 'm', 'a', 'r', 1, 0}

func (m mark) encode(b *[markSize]byte) {
	copy(b[:], markMagic[:])
	le.PutUint64(b[8:], uint64(m.segment))
	le.PutUint64(b[16:], uint64(m.at))
	le.PutUint64(b[24:], uint64(m.next))
	le.PutUint32(b[32:], checksum(b[:32]))
}

func decodeMark(b []byte) (mark, error) {
	if len(b) != markSize || !bytes.Equal(b[:8], markMagic[:]) {
		return mark{}, fmt.Errorf("no mark: %d bytes, %d expected, or another begin", len(b), markSize)
	}
	if le.Uint32(b[32:]) != checksum(b[:32]) {
		return mark{}, errors.New("no mark: its crc is wrong")
	}
	return mark{Pos(le.Uint64(b[8:])), int64(le.Uint64(b[16:])), Pos(le.Uint64(b[24:]))}, nil
}

// A markFile keeps the mark of a log.
type markFile struct {
	f    faultfs.File
	buf  [markSize]byte
	lost bool // a write failed: an older mark stays, which is true too
}

func openMark(fs faultfs.FS, dir string) (markFile, error) {
	f, err := fs.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	return markFile{f: f}, err
}

// read returns the mark. An error of decoding is one that the log can do without a mark with: (mark{}, nil, why).
func (m *markFile) read() (got mark, unreadable, err error) {
	b, err := io.ReadAll(io.NewSectionReader(m.f, 0, markSize+1))
	if err != nil || len(b) == 0 {
		return mark{}, nil, err
	}
	got, unreadable = decodeMark(b)
	return got, unreadable, nil
}

// write keeps a mark. It returns an error once, then it has given up.
func (m *markFile) write(to mark) error {
	if m.lost {
		return nil
	}
	to.encode(&m.buf)
	_, err := m.f.WriteAt(m.buf[:], 0)
	m.lost = err != nil
	return err
}

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
