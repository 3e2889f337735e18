package scrub

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
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
	for k := range len(lit) {
		if i+k >= len(t.b) {
			return t.ended()
		}
		c := t.b[i+k]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lit[k] {
			return miss
		}
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
