package scrub

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// An outcome is what a matcher found out about one place of a text.
type outcome uint8

const (
	miss outcome = iota
	hit
	more // undecided: it depends on bytes that have not come yet
)

// A text is what is scanned: the whole, or what has come of a stream so far.
type text struct {
	b       []byte
	final   bool // nothing follows
	streams bool // it is a stream of server-sent events
}

// ended is the outcome of a matcher that came to the end of the text while all fitted.
func (t text) ended() outcome {
	if t.final {
		return miss
	}
	return more
}

// endedOr is o, or more where something may follow.
func (t text) endedOr(o outcome) outcome {
	if t.final {
		return o
	}
	return more
}

// literal tells whether lit stands at i.
func (t text) literal(i int, lit string) outcome {
	rest := t.b[min(i, len(t.b)):]
	if len(rest) >= len(lit) {
		if string(rest[:len(lit)]) == lit {
			return hit
		}
		return miss
	}
	if string(rest) == lit[:len(rest)] {
		return t.ended()
	}
	return miss
}

// literalFold is literal for a lowercase lit, whatever the case of the text.
func (t text) literalFold(i int, lit string) outcome {
	rest := t.b[min(i, len(t.b)):min(i+len(lit), len(t.b))]
	switch {
	case !bytes.EqualFold(rest, []byte(lit[:len(rest)])):
		return miss
	case len(rest) < len(lit):
		return t.ended()
	}
	return hit
}

// run returns the end of the longest run of set at i. Its outcome is a miss where the run is longer than limit bytes.
func (t text) run(i int, set *chars.Set, limit int) (end int, o outcome) {
	end = i
	for end < len(t.b) && set[t.b[end]] {
		if end++; end-i > limit {
			return end, miss
		}
	}
	if end == len(t.b) && !t.final {
		return end, more
	}
	return end, hit
}

// wholeText is a text to which nothing is added.
func wholeText(s string) text { return text{b: []byte(s), final: true} }

// A rank says which of two overlapping finds names the placeholder.
type rank uint8

const (
	general   rank = iota // Bearer, Basic, a URL: anything may stand there
	shaped                // a provider's key
	knownRank             // an exact value
)

// A span is a secret that was found.
type span struct {
	from       int // where the evidence begins, at start or before it
	start, end int
	rank       rank
	rule       string
	known      *known // of an exact value that the span holds and nothing else
	form       string // in which it stands; see formOf
	blank      bool   // a later part of a value whose first part is replaced by the placeholder
	context    bool   // only what stands before it tells that it is a secret
	protected  bool   // a placeholder: nothing that overlaps it is a secret
}

// at is the range of a span in a text in which the span's begins at an offset.
func (s span) at(offset int64) Range {
	return Range{offset + int64(s.start), offset + int64(s.end), s.rule, s.blank}
}

// A Range is where in a text a secret stands: from Start to before End, in bytes. Part says that it is a further part of the
// secret before it.
type Range struct {
	Start, End int64
	Rule       string
	Part       bool
}

// A rule finds secrets by their shape.
type rule struct {
	starts []string // the three bytes with which the evidence can begin: match is called where one of them stands
	names  []string // what it calls the secrets that it finds, before RuleName
	// match looks for a secret whose evidence begins at i. The span may begin later. The outcome may be more only while
	// fewer than maxShape bytes follow i.
	match func(t text, i int) (span, outcome)
}

// maxShape is the length in bytes of the longest secret that is found by its shape. A Writer never holds back more than
// this, or than the escaped form of the longest known value.
const maxShape = 16 << 10

// longestField is the length of the longest beginning by which a stream of events is known.
const longestField = len("event:")

// isEvents tells whether a text that begins with b is a stream of server-sent events.
func isEvents(b []byte) bool {
	first := string(b[:min(len(b), longestField)])
	return strings.HasPrefix(first, "data:") || strings.HasPrefix(first, "event:") || strings.HasPrefix(first, "id:") || strings.HasPrefix(first, ":")
}

// blanks returns where the blanks at i end.
func blanks(b []byte, i int) int {
	for i < len(b) && chars.IsBlank(b[i]) {
		i++
	}
	return i
}

// formBlank returns the end of the blank at i, which a form or a URL may have escaped.
func formBlank(t text, i int) (end int, o outcome) {
	for _, blank := range []string{" ", "+", "%20"} {
		if o := t.literal(i, blank); o != miss {
			return i + len(blank), o
		}
	}
	return 0, miss
}

// A finds collects spans in the order of their evidence.
type finds struct {
	spans      []span
	start, end int // of the last of them that overlap each other
}

// add adds s. Where spans overlap each other without end, as those of a known value that repeats itself can, what begins
// more than maxShape bytes after the first is left out: what a Writer holds back stays bounded.
func (f *finds) add(s span) {
	switch {
	case s.from >= f.end:
		f.start = s.from
	case s.from-f.start > maxShape:
		return
	}
	f.end = max(f.end, s.end)
	f.spans = append(f.spans, s)
}

// scan finds every secret that begins in t at from or later. Where something is undecided it ends: what stands at hold
// and after it must be scanned again once more has come.
func (x *index) scan(t text, from int) (spans []span, hold int) {
	var f finds
	i := x.Next(t.b, from)
	for ; i+2 < len(t.b); i = x.Next(t.b, i+1) {
		if wait := x.at(t, i, &f); wait {
			return f.spans, i
		}
	}
	if t.final {
		return f.spans, len(t.b)
	}
	return f.spans, x.Tail(t.b, max(from, i))
}

// scanTo adds the secrets of a whole text that begin from from on and before to.
func (x *index) scanTo(t text, from, to int, f *finds) {
	for i := x.Next(t.b, from); i < to && i+2 < len(t.b); i = x.Next(t.b, i+1) {
		x.at(t, i, f)
	}
}

func (x *index) at(t text, i int, f *finds) (wait bool) {
	for _, s := range x.shapesAt(t.b[i], t.b[i+1]) {
		if (s.any || s.third == t.b[i+2]) && x.ruleAt(s.rules, t, i, f) {
			return true
		}
	}
	if !x.any {
		return false
	}
	return x.knownFrom(t, i, f)
}

// knownFrom adds the known values at i, whose first byte may stand escaped there.
func (x *index) knownFrom(t text, i int, f *finds) (wait bool) {
	c := t.b[i]
	if x.knownAt(t, i, c, f) {
		return true
	}
	if c != '\\' && c != '%' {
		return false
	}
	tried := c
	if outer, _, o := t.peel(i, maxPercent); o == hit && outer == '\\' && outer != c { // it may stand for itself
		if x.knownAt(t, i, outer, f) {
			return true
		}
		tried = outer
	}
	first, o := t.firstByte(i)
	return o == more || o == hit && first != c && first != tried && x.knownAt(t, i, first, f)
}

// ruleAt adds what the rules find at i.
func (x *index) ruleAt(rules []*rule, t text, i int, f *finds) (wait bool) {
	for _, r := range rules {
		switch s, o := r.match(t, i); {
		case o == more:
			return true
		case o == hit && genuine(t, s):
			s.from = i
			f.add(s)
		}
	}
	return false
}

// knownAt adds the known values at i whose first byte is first.
func (x *index) knownAt(t text, i int, first byte, f *finds) (wait bool) {
	plain := t.b[i] == first && first != '%' && first != '\\'
	for _, p := range x.known[first] {
		if plain && !p.mayFollow(t.b[i+1]) {
			continue
		}
		switch spans, o := p.match(t, i); o {
		case more:
			return true
		case hit:
			for _, s := range spans {
				f.add(s)
			}
		}
	}
	return false
}

// sortSpans orders spans from left to right, and of those that begin together puts the one first that names them.
func sortSpans(spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.rank, a.rank), cmp.Compare(b.end, a.end))
	})
}

// settled returns how much of what comes before hold can be passed on: no span and no evidence of one reaches over it,
// so that what is found does not depend on where the text was cut.
func settled(spans []span, hold int) int {
	for again := true; again; {
		again = false
		for _, s := range spans {
			if s.from < hold && s.end > hold {
				hold, again = s.from, true
			}
		}
	}
	return hold
}

// resolve turns sorted spans, which may overlap, into spans that do not. What overlaps a placeholder is dropped: it was
// scrubbed before. Other overlapping spans become one, so that no part of either is left standing.
func resolve(spans []span) []span {
	var protected, out []span
	for _, s := range spans {
		if s.protected {
			protected = append(protected, s)
		}
	}
	for _, s := range spans {
		if s.protected || overlap(protected, s) {
			continue
		}
		if n := len(out); n > 0 && s.start < out[n-1].end {
			out[n-1] = join(out[n-1], s)
			continue
		}
		out = append(out, s)
	}
	return out
}

// overlap reports whether one of the sorted placeholders overlaps s.
func overlap(protected []span, s span) bool {
	i, _ := slices.BinarySearchFunc(protected, s.start-placeholders.Longest, func(p span, at int) int { return cmp.Compare(p.start, at) })
	for ; i < len(protected) && protected[i].start < s.end; i++ {
		if protected[i].end > s.start {
			return true
		}
	}
	return false
}

// join unites two overlapping spans of which a begins first.
func join(a, b span) span {
	u := a
	if b.rank > a.rank {
		u = b
	}
	end := max(a.end, b.end)
	if u.start != a.start || u.end != end {
		u.known, u.context = nil, false
	}
	u.start, u.end, u.blank = a.start, end, a.blank && b.blank
	return u
}

func (x *index) urls(v string) []span {
	if !strings.Contains(v, "@") {
		return nil
	}
	spans, _ := x.scan(wholeText(v), 0)
	return slices.DeleteFunc(spans, func(s span) bool { return s.rule != urlPassword })
}

// scanAll is scan for a whole text, which passes by what it has seen.
func (x *index) scanAll(b []byte) []span {
	streams := isEvents(b)
	whole := text{b, true, streams}
	if len(b) < 2*pieceLen {
		spans, _ := x.scan(whole, 0)
		return spans
	}
	var f finds
	for at := 0; at < len(b); {
		end := min(at+pieceLen, len(b))
		key := x.seen.key(b[max(0, at-chars.LookBehind):at], b[at:end], streams)
		if n := x.seen.get(key); n > 0 {
			at += n
			continue
		}
		// What is decided without what follows the piece holds wherever the piece stands.
		spans, hold := x.scan(text{b[:end], false, streams}, at)
		if n := hold - at; len(spans) == 0 && n >= leastSaved {
			x.seen.add(key, n)
			at = hold
			continue
		}
		x.scanTo(whole, at, end, &f)
		at = end
	}
	return f.spans
}
