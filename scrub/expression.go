package scrub

import (
	"io"
	"regexp"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// An expression is a regular expression that is matched at one place of a text that may still grow. It is compiled when it is first asked.
// A byte of the text is a rune to it.
type expression struct {
	source string
	least  string // the literal with which it begins: it is asked only where that stands
	word   bool   // it must begin a word
	limit  int    // bytes that are looked at
	cuts   bool   // what reaches the limit matches as far as it came; else it does not match

	once sync.Once
	re   *regexp.Regexp
}

// match returns where the match at i and its groups begin and end in the text, as package regexp has them. It is undecided where more bytes
// could change that, but one byte early.
func (e *expression) match(t text, i int) (groups []int, o outcome) {
	if e.word && !chars.Boundary(t.b, i) {
		return nil, miss
	}
	if o := t.literal(i, e.least); o != hit {
		return nil, o
	}
	e.once.Do(func() { e.re = regexp.MustCompile(`\A(?:` + e.source + `)`) })
	r := &growing{rest: t.b[min(i, len(t.b)):], left: e.limit}
	groups = e.re.FindReaderSubmatchIndex(r)
	switch {
	case r.ended && !t.final:
		return nil, more
	case groups == nil || r.left < 0 && !e.cuts:
		return nil, miss
	}
	for k := range groups {
		groups[k] += i
	}
	return groups, hit
}

// finds returns a matcher of secrets like s, which are its first group, where accept takes what stands before the match, the whole of it
// and the secret. A nil accept takes all.
func (e *expression) finds(s span, accept func(before, all, secret []byte) bool) func(t text, i int) (span, outcome) {
	return func(t text, i int) (span, outcome) {
		groups, o := e.match(t, i)
		if o != hit {
			return span{}, o
		}
		found := s
		found.start, found.end = groups[2], groups[3]
		if accept != nil && !accept(t.b[:i], t.b[i:groups[1]], t.b[found.start:found.end]) {
			return span{}, miss
		}
		return found, hit
	}
}

// A growing gives the bytes of what has come of a text, and tells whether its reader wanted more than these, or more than it may have.
type growing struct {
	rest  []byte
	left  int // bytes that may be read; negative where more were wanted
	ended bool
}

// ReadRune implements io.RuneReader.
func (g *growing) ReadRune() (rune, int, error) {
	if g.left--; g.left < 0 {
		return 0, 0, io.EOF
	}
	if len(g.rest) == 0 {
		g.ended = true
		return 0, 0, io.EOF
	}
	c := g.rest[0]
	g.rest = g.rest[1:]
	return rune(c), 1, nil
}
