package tty

import "slices"

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
