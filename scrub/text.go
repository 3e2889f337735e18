package scrub

import "github.com/tapedeck-dev/tapedeck/scrub/internal/chars"

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
