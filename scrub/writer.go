package scrub

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// A Writer scrubs a stream. What it passes on is what Scrubber.Bytes makes of the whole stream, wherever the stream is
// cut into writes (values that are added meanwhile aside).
//
// It holds back the shortest tail that could be the beginning of a secret: at most 16 KiB, or the escaped length of the
// longest known value where that is more. It fails closed: after an error of the underlying writer nothing more is
// written, and what was held back is dropped. It is for one goroutine.
type Writer struct {
	m     *memory
	w     io.Writer
	buf   []byte // what was passed on and matchers look back to, then what is held
	past  int    // length of the former
	at    int64  // offset of buf in the stream
	out   []byte // scratch
	head  []byte // the first bytes of the stream, by which one of events is known
	tail  []byte // the last bytes of the stream, in which what is wanted may have begun; nil where nothing is
	found bool
	err   error

	// learnt says from where in the stream the values are looked for that it taught itself; nil where it teaches none.
	learnt map[*known]int64

	places []Place // that are hidden whatever stands there; see HideAt

	replaced func(start, end int64, length int) // nil for nobody
	tell     func(Range)                        // is told of secrets, and nothing is passed on; nil for a Writer
}

// ErrClosed is what a Writer returns that is written to after Close.
var ErrClosed = errors.New("scrub: write after close")

// Found reports whether a secret has been replaced so far.
func (w *Writer) Found() bool { return w.found }

// OnReplace has f told of every secret that is replaced, in order: from start to end of the stream as it came stood what is
// a placeholder of length bytes now. It must be called before the first Write.
func (w *Writer) OnReplace(f func(start, end int64, length int)) { w.replaced = f }

func (w *Writer) note(start, end, length int) {
	if w.replaced != nil {
		w.replaced(w.at+int64(start), w.at+int64(end), length)
	}
}

// Held returns how many bytes of the stream are held back.
func (w *Writer) Held() int { return len(w.buf) - w.past }

// Write scrubs p and passes on what is decided. It never keeps or changes p. The error is the underlying writer's, and
// stays.
func (w *Writer) Write(p []byte) (n int, err error) {
	const piece = 64 << 10 // bounds the buffer whatever p is
	for n < len(p) && w.err == nil {
		part := p[n:min(n+piece, len(p))]
		w.head = append(w.head, part[:min(len(part), longestField-len(w.head))]...)
		w.tail = w.m.recogniseNext(w.tail, part)
		w.buf = append(w.buf, part...)
		w.flush(false)
		n += len(part)
	}
	return n, w.err
}

// Close passes on what was held back, scrubbed. It does not close the underlying writer. The error is the first that
// there was.
func (w *Writer) Close() error {
	if errors.Is(w.err, ErrClosed) {
		return nil
	}
	if w.err == nil {
		w.flush(true)
	}
	err := w.err
	if err == nil {
		w.err = ErrClosed
	}
	w.buf, w.out, w.tail = nil, nil, nil
	return err
}

func (w *Writer) flush(final bool) {
	spans, safe := w.decided(final)
	for w.learn(spans) {
		spans, safe = w.decided(final) // a value that was just learnt may stand in what follows
	}
	w.found = w.found || len(spans) > 0
	if w.tell != nil {
		for _, s := range spans {
			w.tell(s.at(w.at))
		}
	} else {
		w.out = w.m.replace(w.out[:0], w.buf[:safe], w.past, spans, w.note)
		w.pass()
	}
	w.past = min(safe, chars.LookBehind)
	w.at += int64(safe - w.past)
	w.forget()
	w.buf = append(w.buf[:0], w.buf[safe-w.past:]...)
}

// decided returns the secrets up to safe, behind which something is undecided.
func (w *Writer) decided(final bool) (spans []span, safe int) {
	spans, safe = w.m.index.Load().scan(text{w.buf, final, isEvents(w.head)}, w.past)
	if len(w.learnt) > 0 {
		spans = slices.DeleteFunc(spans, func(s span) bool {
			return s.known != nil && w.at+int64(s.start) < w.learnt[s.known]
		})
	}
	spans, safe = w.placed(spans, safe, final)
	if len(spans) > 0 {
		sortSpans(spans)
		safe = settled(spans, safe)
		spans = resolve(before(spans, safe))
	}
	return spans, safe
}

// learn makes the first secret known that only its context told, and reports whether there was one. It is looked for from
// its end on, wherever the stream is cut: what came before it has been passed on.
func (w *Writer) learn(spans []span) bool {
	if w.learnt == nil {
		return false
	}
	for _, s := range spans {
		if !s.context {
			continue
		}
		if k := w.m.learnLeak(s.rule, string(w.buf[s.start:s.end])); k != nil {
			w.learnt[k] = w.at + int64(s.end)
			return true
		}
	}
	return false
}

func (w *Writer) pass() {
	if len(w.out) == 0 {
		return
	}
	if n, err := w.w.Write(w.out); err != nil {
		w.err = err
	} else if n < len(w.out) {
		w.err = io.ErrShortWrite
	}
}

// before returns those of the sorted spans that begin before end.
func before(spans []span, end int) []span {
	for i := range spans {
		if spans[i].start >= end {
			return spans[:i]
		}
	}
	return spans
}

// HideAt hides places of the stream, whose offsets are of the stream as it comes: all that Write has been given stands before
// them, and before each stands the one that was named first.
func (w *Writer) HideAt(places []Place) { w.places = append(w.places, places...) }

// placed adds what hides the places that lie in buf. Of one that has not come whole, its beginning bounds what is decided.
func (w *Writer) placed(spans []span, safe int, final bool) ([]span, int) {
	for _, p := range w.places {
		start, end := int(p.Start-w.at), int(p.End-w.at)
		switch {
		case start >= len(w.buf):
			return spans, safe
		case start < w.past: // passed on
		case end <= len(w.buf) || final:
			end = min(end, len(w.buf))
			spans = append(spans, w.m.spanOf(p, w.buf[start:end], start))
		default:
			return spans, min(safe, start)
		}
	}
	return spans, safe
}

// forget drops the places that were passed on.
func (w *Writer) forget() {
	for len(w.places) > 0 && w.places[0].End <= w.at+int64(w.past) {
		w.places = w.places[1:]
	}
}

const (
	// maxUnpacked bounds in bytes what is looked through of a compressed text; what has more cannot be scanned.
	maxUnpacked = 1 << 30
	// maxStored bounds in bytes what is stored of one in which a secret lies.
	maxStored = 64 << 20
)

// errUnpacked says that a compressed text has more than maxUnpacked bytes.
var errUnpacked = errors.New("scrub: it decompresses to too much")

// unpacked returns what b decompresses to, scrubbed, behind a line with a placeholder of b. found is false where b is not
// compressed, does not decompress, or holds no secret. What is too long to be looked through counts as one that does:
// nothing of it is written but the placeholder. left is how many bytes may be looked through, and then how many are left.
func unpacked(m *memory, b []byte, left *int64) (out []byte, found bool) {
	unpack := unpacker(b)
	if unpack == nil {
		return nil, false
	}
	var kept bytes.Buffer
	w := &Writer{m: m, w: &limited{&kept, maxStored}} // which learns nothing, as Bytes does
	limit := &limited{w, *left}
	err := unpack(limit)
	*left = max(limit.n, 0)
	errClose := w.Close()
	if !w.Found() && !errors.Is(err, errUnpacked) {
		return nil, false
	}
	out = append([]byte(m.key.placeholder("packed", b)), '\n')
	m.count([]span{{rule: "packed"}})
	if errors.Is(err, errUnpacked) || errClose != nil {
		return out, true
	}
	return append(out, kept.Bytes()...), true
}

// limited passes on n bytes and fails after them.
type limited struct {
	w io.Writer
	n int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.n -= int64(len(p)); l.n < 0 {
		return 0, errUnpacked
	}
	return l.w.Write(p)
}

// unpacker returns what writes b to a Writer decompressed, nil where b does not begin as something compressed does. What
// decompresses before the first damage is written.
func unpacker(b []byte) func(io.Writer) error {
	switch {
	case len(b) > 10 && bytes.HasPrefix(b, []byte{0x1f, 0x8b, 8}):
		return func(w io.Writer) error {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return err
			}
			_, err = io.Copy(w, r)
			return err
		}
	case isZlib(b):
		return func(w io.Writer) error { return inflate(w, bytes.NewReader(b)) }
	case bytes.HasPrefix(b, []byte("PACK\x00\x00\x00")):
		return func(w io.Writer) error { return unpackGit(w, b) }
	}
	return nil
}

// isZlib tells whether b begins as zlib does: deflate with a window of 32 KiB, at one of four levels, without a dictionary.
func isZlib(b []byte) bool {
	return len(b) > 6 && b[0] == 0x78 && bytes.IndexByte([]byte{0x01, 0x5e, 0x9c, 0xda}, b[1]) >= 0
}

// inflate writes one zlib stream, and leaves r behind it.
func inflate(w io.Writer, r flate.Reader) error {
	z, err := zlib.NewReader(r)
	if err != nil {
		return err
	}
	if _, err = io.Copy(w, z); err != nil {
		return err
	}
	return z.Close()
}

// unpackGit writes the objects of a pack, a line end after each. Of one that is stored as a difference to another that is
// the difference: what it adds stands in it in pieces of 127 bytes at most.
func unpackGit(w io.Writer, b []byte) error {
	const header = 12
	if len(b) < header {
		return io.ErrUnexpectedEOF
	}
	r := bytes.NewReader(b[header:])
	for range binary.BigEndian.Uint32(b[8:]) {
		if err := skipObjectHeader(r); err != nil {
			return err
		}
		if err := inflate(w, r); err != nil {
			return err
		}
		if _, err := w.Write([]byte{'\n'}); err != nil {
			return err
		}
	}
	return nil
}

// skipObjectHeader reads the type and length of an object, and what a difference is to.
func skipObjectHeader(r *bytes.Reader) error {
	const (
		offsetDelta = 6
		refDelta    = 7
		digest      = 20 // bytes of SHA-1
	)
	first, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
	case first>>4&7 == offsetDelta:
		_, err = binary.ReadUvarint(r)
	case first>>4&7 == refDelta:
		_, err = r.Seek(digest, io.SeekCurrent)
	}
	return err
}

// inParts returns b with what holds a secret in a compressed part of it decompressed and scrubbed, where b is the body of a
// form: a file that is uploaded. found is false where there is none, and then out is b. All parts together may have left bytes
// decompressed, from which what was looked through is taken away.
func inParts(m *memory, b []byte, left *int64) (out []byte, found bool) {
	done := 0 // how much of b out stands for
	eachPart(b, between("", b), func(_ []byte, start, end int) {
		if kept, packed := unpacked(m, b[start:end], left); packed {
			out = append(append(out, b[done:start]...), kept...)
			done = end
		}
	})
	if done == 0 {
		return b, false
	}
	return append(out, b[done:]...), true
}
