package packed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// A Fetch gives n bytes of a file from an offset on, all of them or an error.
type Fetch func(from, n int64) ([]byte, error)

// A View reads entries of a packed recording that lies elsewhere, of which it fetches the frames that it needs. It believes nothing but the
// digest of the table: the table has the digest of each frame. It may be used by several goroutines.
type View struct {
	fetch Fetch
	size  int64
	top   *part

	mu    sync.Mutex
	pages []heldPage    // those that were fetched last, the last at the end; guarded by mu
	held  []heldFrame   // those that were fetched last, the last at the end; guarded by mu
	idle  *zstd.Decoder // nil while it is used: a new one costs its window; guarded by mu
}

type heldPage struct {
	n     int
	nodes []node
}

type heldFrame struct {
	n int
	b []byte // compressed
}

// Bounds of what a View holds and fetches at once. The frames that it holds have maxFrame bytes at most, too.
const (
	maxHeld  = 16      // frames
	maxPages = 64      // of the table
	maxAhead = 16      // frames
	tailRead = 8 << 10 // bytes: the root of the table is seldom longer
)

// NewView opens the file of size bytes whose table has a digest. An error that wraps ErrDamaged is for another table.
func NewView(fetch Fetch, size int64, digest cas.Digest) (*View, error) {
	if size < 0 {
		return nil, fmt.Errorf("%w: it is said to have %d bytes", ErrDamaged, size)
	}
	v := &View{fetch: fetch, size: size}
	root, err := v.root()
	if errors.Is(err, ErrNoRanges) {
		return nil, fmt.Errorf("%w: it has no table", ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	if cas.Sum(root) != digest {
		return nil, fmt.Errorf("%w: its table is not the one that was pushed", ErrDamaged)
	}
	v.top, err = decodePart(root[:len(root)-tailSize], size)
	return v, err
}

// TableOf returns the digest of the table of a packed recording that a Reader has taken: zero for none.
func TableOf(r io.ReaderAt, size int64) (cas.Digest, error) {
	v := &View{size: size, fetch: func(from, n int64) ([]byte, error) {
		b := make([]byte, n)
		got, err := r.ReadAt(b, from)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return b[:got], err
	}}
	root, err := v.root()
	if errors.Is(err, ErrNoRanges) {
		return cas.Digest{}, nil
	}
	return cas.Sum(root), err
}

// root fetches what the root of the table is hashed by; ErrNoRanges is for none.
func (v *View) root() ([]byte, error) {
	tail, err := v.read(v.size-min(v.size, tailRead), min(v.size, tailRead))
	if err != nil {
		return nil, err
	}
	n, err := rootLen(tail)
	if err != nil || n > min(v.size, maxTable) {
		return nil, ErrNoRanges
	}
	if n > int64(len(tail)) {
		return v.read(v.size-n, n)
	}
	return tail[int64(len(tail))-n:], nil
}

// read fetches bytes, and holds what fetches to its word.
func (v *View) read(from, n int64) ([]byte, error) {
	b, err := v.fetch(from, n)
	if err == nil && int64(len(b)) != n {
		err = fmt.Errorf("%w: %d bytes are missing from byte %d on", ErrDamaged, n-int64(len(b)), from)
	}
	return b, err
}

// page returns the frames of a part of the table.
func (v *View) page(i int) ([]node, error) {
	if !v.top.Pages {
		return v.top.Nodes, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, h := range v.pages {
		if h.n == i {
			return h.nodes, nil
		}
	}
	at := v.top.Nodes[i]
	if at.Size > maxTable {
		return nil, fmt.Errorf("%w: a part of its table has %d bytes", ErrDamaged, at.Size)
	}
	b, err := v.read(at.At+skipHead, at.Size-skipHead)
	if err != nil {
		return nil, err
	}
	if cas.Sum(b) != at.Digest {
		return nil, fmt.Errorf("%w: a part of its table is another one", ErrDamaged)
	}
	p, err := decodePart(b, v.size)
	if err == nil && (p.Pages || len(p.Nodes) > pageLen) {
		err = fmt.Errorf("%w: a part of its table has parts", ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	v.pages = append(v.pages[max(0, len(v.pages)-maxPages+1):], heldPage{i, p.Nodes})
	return p.Nodes, nil
}

// node returns the nth frame; io.EOF where there are fewer.
func (v *View) node(n int) (node, error) {
	i, at := n/pageLen, n%pageLen
	if !v.top.Pages {
		i, at = 0, n
	}
	if v.top.Pages && i >= len(v.top.Nodes) {
		return node{}, io.EOF
	}
	p, err := v.page(i)
	if err == nil && at >= len(p) {
		err = io.EOF
	}
	if err != nil {
		return node{}, err
	}
	return p[at], nil
}

// find returns the number of the last frame of which ok is true, which it is of all before it, the first one too.
func (v *View) find(ok func(*node) bool) (int, error) {
	last := func(nodes []node) int {
		return max(0, sort.Search(len(nodes), func(i int) bool { return !ok(&nodes[i]) })-1)
	}
	page := 0
	if v.top.Pages {
		page = last(v.top.Nodes)
	}
	nodes, err := v.page(page)
	return page*pageLen + last(nodes), err
}

// frame returns the nth frame, compressed and checked. Of those that it does not hold it fetches so many at once.
func (v *View) frame(n, ahead int) ([]byte, error) {
	v.mu.Lock()
	for _, h := range v.held {
		if h.n == n {
			v.mu.Unlock()
			return h.b, nil
		}
	}
	v.mu.Unlock()
	first, err := v.node(n)
	if err != nil {
		return nil, err
	}
	run := []node{first}
	length := first.Size
	for len(run) < ahead {
		next, err := v.node(n + len(run))
		if err == nil && next.At != first.At+length { // of another page than the one before it
			return nil, fmt.Errorf("%w: no frame follows at byte %d", ErrDamaged, first.At+length)
		}
		if err != nil || length+next.Size > maxFrame {
			break // which the next call tells
		}
		run, length = append(run, next), length+next.Size
	}
	if length > maxFrame {
		return nil, fmt.Errorf("%w: a frame has %d bytes, and %d are fetched at most", ErrNoRanges, length, maxFrame)
	}
	b, err := v.read(first.At, length)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, f := range run {
		one := b[f.At-first.At:][:f.Size:f.Size]
		if cas.Sum(one) != f.Digest {
			return nil, fmt.Errorf("%w: the frame at byte %d is another one", ErrDamaged, f.At)
		}
		v.held = append(v.held, heldFrame{n + i, slices.Clone(one)}) // alone: else one that is held holds all that were fetched with it
	}
	held := int64(0)
	for i := len(v.held) - 1; i >= 0; i-- {
		if held += int64(len(v.held[i].b)); held > maxFrame || len(v.held)-i > maxHeld {
			v.held = slices.Clone(v.held[i+1:])
			break
		}
	}
	return b[:first.Size:first.Size], nil
}

// ErrNoRanges is wrapped by the refusal of what is too long to be looked at without all of it.
var ErrNoRanges = errors.New("it cannot be read in ranges")

// A stream reads what frames hold from the beginning of one on.
type stream struct {
	v     *View
	z     *zstd.Decoder
	next  int   // frame
	ahead int   // how many are fetched at once
	left  int64 // of what the frame holds
	*bufio.Reader
}

func (v *View) stream(at int) (*stream, error) {
	v.mu.Lock()
	z, err := v.idle, error(nil)
	v.idle = nil
	v.mu.Unlock()
	if z == nil {
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	}
	s := &stream{v: v, z: z, next: at, ahead: 1}
	s.Reader = bufio.NewReaderSize(readerFunc(s.read), 64<<10)
	return s, err
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func (s *stream) read(b []byte) (int, error) {
	for s.left == 0 {
		n, err := s.v.node(s.next)
		if err != nil {
			return 0, err
		}
		frame, err := s.v.frame(s.next, s.ahead)
		if err != nil {
			return 0, err
		}
		if err := s.z.Reset(bytes.NewReader(frame)); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		s.next++
		s.left, s.ahead = n.Raw, min(2*s.ahead, maxAhead)
	}
	n, err := s.z.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && s.left > 0:
		err = fmt.Errorf("%w: a frame is shorter than its table says", ErrDamaged)
	case errors.Is(err, io.EOF):
		err = nil
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return n, err
}

// An Entry is one file of a View. It must be closed.
type Entry struct {
	Name  string
	Size  int64 // of its content, in bytes
	s     *stream
	left  int64
	alone bool // its frame holds nothing else
	index bool // that of the file was read over
}

// Whole reports whether nothing of it was read, or left out by OpenTape.
func (e *Entry) Whole() bool { return e.left == e.Size }

// Read implements io.Reader. The bytes of a blob are those of its frame, and are not held against its name.
func (e *Entry) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.s.Read(b[:min(int64(len(b)), e.left)])
	e.left -= int64(n)
	return n, cutShort(err)
}

// Close frees what the entry holds.
func (e *Entry) Close() error {
	v := e.s.v
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle, e.s.z = e.s.z, nil
	return nil
}

// Open opens an entry; the error for none wraps fs.ErrNotExist.
func (v *View) Open(name string) (*Entry, error) {
	e, err := v.from(name)
	for err == nil && e.Name < name && !e.alone {
		err = e.advance()
	}
	if errors.Is(err, io.EOF) || err == nil && e.Name != name {
		err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if err != nil && e != nil {
		e.Close()
		e = nil
	}
	return e, err
}

// Around gives f each entry that begins in the frame in which the one of a name would: they cost no more than that one.
func (v *View) Around(name string, f func(*Entry) error) error {
	i, err := v.find(func(n *node) bool { return n.before(name) })
	if err != nil {
		return err
	}
	next, err := v.node(i + 1)
	last := errors.Is(err, io.EOF)
	if err != nil && !last {
		return err
	}
	e, err := v.from(name)
	if err == nil && !e.Whole() {
		err = e.advance()
	}
	for err == nil && (last || e.Name < next.Name || e.Name == next.Name && next.From > 0) {
		if err = f(e); err == nil && !last && e.Name == next.Name {
			break
		}
		if err == nil {
			err = e.rest()
		}
		if e.s.left == 0 && e.s.Buffered() == 0 {
			break // what follows is in the next frame
		}
		if err == nil {
			err = e.advance()
		}
	}
	if e != nil {
		e.Close()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// from returns an entry at or before the one of a name.
func (v *View) from(name string) (*Entry, error) {
	i, err := v.find(func(n *node) bool { return n.before(name) })
	if err != nil {
		return nil, err
	}
	n, err := v.node(i)
	if err != nil {
		return nil, err
	}
	s, err := v.stream(i)
	if err != nil {
		return nil, err
	}
	e := &Entry{s: s}
	if n.From > 0 {
		e.Name, e.Size, e.left, e.alone = n.Name, n.Of, n.Of-n.From, n.inTape()
		return e, nil
	}
	return e, e.advance()
}

// rest reads over what is left of the entry.
func (e *Entry) rest() error {
	n := e.left + padding(e.Size)
	e.left, e.Size = 0, 0
	_, err := io.CopyN(io.Discard, e.s, n)
	return cutShort(err)
}

// cutShort is err, which where it says that bytes are missing is damage.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut short", ErrDamaged)
	}
	return err
}

// advance goes on to the next entry, io.EOF where there is none.
func (e *Entry) advance() error {
	if err := e.rest(); err != nil {
		return err
	}
	var h [block]byte
	if _, err := io.ReadFull(e.s, h[:]); err != nil {
		return cutShort(err)
	}
	if h == [block]byte{} {
		return io.EOF
	}
	name, size, err := parseHeader(&h)
	switch {
	case err != nil:
		return err
	case name == indexName && e.Name == "" && !e.index:
		e.index, e.Size, e.left = true, size, size
		return e.advance() // once: a file of such headers would be as many calls
	}
	if err := CheckName(name); err != nil || name <= e.Name {
		return fmt.Errorf("%w: %.120q stands behind %.120q", ErrDamaged, name, e.Name)
	}
	e.Name, e.Size, e.left, e.alone = name, size, size, false
	return nil
}

// Each gives the entries to f, in order, but for those whose names begin with skip, where that is not "": of them no more is fetched than has to be.
func (v *View) Each(skip string, f func(*Entry) error) error {
	e, err := v.from("")
	far := skip == ""
	for err == nil {
		switch skipped := skip != "" && strings.HasPrefix(e.Name, skip); {
		case !skipped:
			err = f(e)
		case !far:
			far = true
			e.Close()
			e, err = v.from(skip + "\xff")
			for err == nil && e.Name < skip { // no frame begins among those to skip: f has had these
				err = e.advance()
			}
			continue
		}
		if err == nil {
			err = e.advance()
		}
	}
	if e != nil {
		e.Close()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// OpenTape opens the run's tape at a record that is no later than the one with a number, as far as records stand in the order of their numbers.
func (v *View) OpenTape(seq uint64) (*Entry, error) {
	i, err := v.find(func(n *node) bool { return n.Name < tapeEntry || n.Name == tapeEntry && (n.From == 0 || n.Seq <= seq) })
	if err != nil {
		return nil, err
	}
	n, err := v.node(i)
	if err != nil || n.Name != tapeEntry || n.From == 0 {
		return v.Open(tapeEntry)
	}
	s, err := v.stream(i)
	return &Entry{Name: n.Name, Size: n.Of, s: s, left: n.Of - n.From}, err
}
