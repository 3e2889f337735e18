package tty

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// A mask of a code point has its bytes and its columns, and does with its neighbours what that does: it begins a cell, or joins the
// one before it, and makes that one wide where that does.
const (
	maskASCII = '*'
	mask2     = '·' // 2 bytes, 1 column
	mask3     = '•' // 3, 1
	maskWide  = '＊' // 3, 2
	mask4     = '🞶' // 4, 1
	mask4Wide = '🈀' // 4, 2
	// Those that a variation selector makes wide.
	varied2  = '©'
	varied3  = '✳'
	varied4  = '🕸'
	selector = '\ufe0f'
	// Half a flag.
	firstFlag, lastFlag, maskFlag = '🇦', '🇿', '🇽'
	// What joins another is not seen, or is the colour of a skin, which makes it wide.
	join2    = '\u034f'
	join3    = '\ufe00'
	join4    = '\U000e0100'
	joinWide = '🏽'
)

// masked reports whether masking leaves b, a text, as it is.
func masked(b []byte) bool {
	for i, c := range b {
		if c != maskASCII {
			rest := bytes.Clone(b[i:])
			maskRun(rest)
			return bytes.Equal(rest, b[i:])
		}
	}
	return true
}

// Mask masks the text of hits in b, which stands at an offset of the stream, in place. Hits may reach over the ends of b; one that
// begins before it must be cut between characters. Control sequences within a hit stay.
func Mask(b []byte, at int64, hits []Hit) {
	for _, h := range hits {
		start, end := max(h.Start-at, 0), min(h.End-at, int64(len(b)))
		if start < end {
			maskText(b[start:end])
		}
	}
}

// A File is what MaskAt masks.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// MaskAt is Mask for a file.
func MaskAt(f File, hits []Hit) error {
	for _, h := range hits {
		b := make([]byte, h.End-h.Start)
		if _, err := f.ReadAt(b, h.Start); err != nil {
			return err
		}
		maskText(b)
		if _, err := f.WriteAt(b, h.Start); err != nil {
			return err
		}
	}
	return nil
}

// maskText masks the characters of b, which begins between sequences.
func maskText(b []byte) {
	var x lexer
	for len(b) > 0 {
		k, n := x.next(b)
		for k == text && n < len(b) && x.state == afterC2 { // the rest of a character whose first byte may be one of C1
			next, m := x.next(b[n:])
			k, n = next, n+m
		}
		if k == text {
			maskRun(b[:n])
		}
		b = b[n:]
	}
}

// maskRun masks printed characters. What joins a character before them stays, and so does what is no UTF-8.
func maskRun(b []byte) {
	cell := afterMask
	inside := false // the cell began in b
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf && (len(b) == 1 || b[1] < utf8.RuneSelf) {
			b[0], inside, cell = maskASCII, true, afterMask
			b = b[1:]
			continue
		}
		r, size := utf8.DecodeRune(b)
		next, begins := grapheme.Next(cell, r)
		mask := r
		switch {
		case r == utf8.RuneError:
			inside = false
		case begins || !grapheme.JoinsCell(cell, r):
			inside = true
			following, _ := utf8.DecodeRune(b[size:])
			mask = maskOf(r, size, following == selector)
		case inside:
			mask = joinOf(r, size)
		}
		if mask != r {
			utf8.EncodeRune(b, mask)
		}
		cell, b = next, b[size:]
	}
}

// afterMask is the state of clusters behind a mask.
var afterMask, _ = grapheme.Next(grapheme.State{}, maskASCII)

// maskOf returns the mask of a code point of n bytes that begins a cell.
func maskOf(r rune, n int, selected bool) rune {
	width := grapheme.Width(r)
	switch {
	case width == 0:
		return r
	case r >= firstFlag && r <= lastFlag:
		return maskFlag
	case selected && grapheme.VariationWide(r):
		return [...]rune{maskASCII, varied2, varied3, varied4}[n-1]
	case width == 2 && n == 4:
		return mask4Wide
	case width == 2:
		return maskWide
	}
	return [...]rune{maskASCII, mask2, mask3, mask4}[n-1]
}

// joinOf returns the mask of a code point of n bytes that joins a cell.
func joinOf(r rune, n int) rune {
	switch {
	case r == selector:
		return r
	case r >= firstFlag && r <= lastFlag:
		return maskFlag
	case grapheme.Width(r) == 2 && n == 4:
		return joinWide
	case n == 2:
		return join2
	case n == 3:
		return join3
	case n == 4:
		return join4
	}
	return r
}

// A span is a range of the raw stream.
type span struct{ start, end int64 }

// maxSpans bounds how many ranges a ledger remembers. Of what it forgot, a secret that still stands on the screen may be counted
// again.
const maxSpans = 1 << 16

// A ledger has what was found: the ranges that are masked, in order and apart, and the hits.
type ledger struct {
	spans  []span
	taken  int64 // what begins before it has left
	late   []Hit // that nobody was told of yet
	all    []Hit // where keep is set
	keep   bool
	report Report
}

// add takes a secret that stands in ranges, in order, or a further part of the last one. One whose ranges are all masked already
// is none; of one that grew, what came to it is a part.
func (l *ledger) add(rule string, ranges []span, part bool) {
	all := len(ranges)
	ranges = slices.DeleteFunc(ranges, func(s span) bool { return s.start >= s.end || l.covers(s) })
	if len(ranges) == 0 {
		return
	}
	part = part || len(ranges) < all
	late := ranges[0].start < l.taken
	for i, s := range ranges {
		l.insert(s)
		h := Hit{Start: s.start, End: s.end, Rule: rule, Part: part || i > 0, Late: late}
		if l.keep {
			l.all = append(l.all, h)
		}
		if s.start < l.taken {
			h.Late = true
			l.late = append(l.late, h)
		}
	}
	l.report.Count([]Hit{{Rule: rule, Late: late, Part: part}})
}

// first returns the index of the first range that ends behind at.
func (l *ledger) first(at int64) int {
	i, _ := slices.BinarySearchFunc(l.spans, at, func(s span, at int64) int {
		if s.end > at {
			return 1
		}
		return -1
	})
	return i
}

func (l *ledger) covers(s span) bool {
	i := l.first(s.start)
	return i < len(l.spans) && l.spans[i].start <= s.start && l.spans[i].end >= s.end
}

// coversAll reports whether ranges, of which there is one, are all masked.
func (l *ledger) coversAll(ranges []span) bool {
	return len(ranges) > 0 && !slices.ContainsFunc(ranges, func(s span) bool { return !l.covers(s) })
}

func (l *ledger) insert(s span) {
	i := l.first(s.start - 1)
	j := i
	for ; j < len(l.spans) && l.spans[j].start <= s.end; j++ {
		s.start, s.end = min(s.start, l.spans[j].start), max(s.end, l.spans[j].end)
	}
	l.spans = slices.Replace(l.spans, i, j, s)
	if len(l.spans) > maxSpans {
		l.spans = slices.Delete(l.spans, 0, maxSpans/2)
	}
}

// beyond returns the end of the range that at lies in, or at: no secret is cut that was found.
func (l *ledger) beyond(at int64) int64 {
	if i := l.first(at); i < len(l.spans) && l.spans[i].start < at {
		return l.spans[i].end
	}
	return at
}

// mask masks b, which stands at an offset.
func (l *ledger) mask(b []byte, at int64) {
	end := at + int64(len(b))
	for i := l.first(at); i < len(l.spans) && l.spans[i].start < end; i++ {
		s := l.spans[i]
		maskText(b[max(s.start-at, 0) : min(s.end, end)-at])
	}
}

// A holder has what was written and not taken, and what was found in it.
type holder struct {
	ledger
	held []byte
	from int // of held that was taken
}

// hold takes what was written.
func (h *holder) hold(p []byte) {
	h.held = append(append(h.held[:0], h.held[h.from:]...), p...)
	h.from = 0
}

// release returns what is held up to an offset of the stream, masked.
func (h *holder) release(to int64) []byte {
	b := h.held[h.from : h.from+int(to-h.taken)]
	h.mask(b, h.taken)
	h.from += len(b)
	h.taken = to
	return b
}

// Late returns the hits in what was taken before they were found, since the last Late: their bytes are to be masked where they
// were written to.
func (h *holder) Late() []Hit {
	late := h.late
	h.late = nil
	return late
}

// Report returns what was found so far.
func (h *holder) Report() Report { return h.report }
