package tty

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// minAccount is the length in bytes from which the identifier of an account is looked for.
const minAccount = 3

// rules are what is looked for in a text.
type rules struct {
	scrub    *scrub.Scrubber
	accounts [][]byte
	email    bool
	looked   int64 // what it cost, for tests
}

func newRules(o *Options) *rules {
	r := &rules{scrub: o.Scrub, email: !o.KeepEmail}
	for _, a := range o.Accounts {
		if a = strings.TrimSpace(a); len(a) >= minAccount {
			r.accounts = append(r.accounts, []byte(a))
		}
	}
	return r
}

// in returns the secrets of a whole text.
func (r *rules) in(b []byte) []scrub.Range {
	r.looked += int64(costOf(b))
	return withoutMasks(b, append(r.scrub.Find(b), r.inLines(b)...))
}

// withoutMasks cuts what was found at borders, and leaves out what is masked.
func withoutMasks(b []byte, found []scrub.Range) []scrub.Range {
	for i := range found {
		found[i].End = beforeBorder(b, found[i].Start, found[i].End)
	}
	return slices.DeleteFunc(found, func(f scrub.Range) bool { return masked(b[f.Start:f.End]) })
}

// beforeBorder returns where what was found in a row ends: the border of a box is no part of it.
func beforeBorder(b []byte, start, end int64) int64 {
	if bytes.IndexByte(b[start:end], borders) < 0 || bytes.IndexByte(b[start:end], '\n') >= 0 {
		return end
	}
	if i := bytes.IndexFunc(b[start:end], isBorder); i > 0 {
		return start + int64(i)
	}
	return end
}

// inLines returns the secrets that lie within one line: addresses of email, accounts, and what a name before a sign gives away.
func (r *rules) inLines(b []byte) (found []scrub.Range) {
	of := func(rule string) func(start, end int) {
		return func(start, end int) {
			found = append(found, scrub.Range{Start: int64(start), End: int64(end), Rule: rule})
		}
	}
	if r.email {
		EachEmail(b, of("email"))
	}
	for _, a := range r.accounts {
		eachWord(b, a, of("account"))
	}
	return append(found, r.scrub.FindNamed(b)...)
}

// eachWord calls f where word stands in b and is no part of a longer one.
func eachWord(b, word []byte, f func(start, end int)) {
	for at := 0; ; {
		i := bytes.Index(b[at:], word)
		if i < 0 {
			return
		}
		start, end := at+i, at+i+len(word)
		if (start == 0 || !joins(b[start-1], b[start])) && (end == len(b) || !joins(b[end-1], b[end])) {
			f(start, end)
		}
		at = end
	}
}

func joins(a, b byte) bool { return chars.IsAlnum(a) && chars.IsAlnum(b) }

const (
	maxLocal  = 64  // bytes, of RFC 5321
	maxDomain = 253 // bytes
)

// noDomains are what a name ends in that has an @ and is none of a person: a picture of twice the size, a unit of systemd.
var noDomains = []string{"png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "service", "socket", "target", "timer", "slice", "scope",
	"mount", "device", "js", "mjs", "cjs", "ts", "json", "md", "tgz", "txt", "lock"}

// EachEmail calls f for each address of email in b: ann@example.org. The user of an address of Git, and of a URL, is none.
func EachEmail(b []byte, f func(start, end int)) {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '@')
		if i < 0 {
			return
		}
		sign := at + i
		at = sign + 1
		start := sign
		for start > 0 && sign-start < maxLocal && isLocal(b[start-1]) {
			start--
		}
		for start < sign && (b[start] == '.' || b[start] == '-' || b[start] == '+') {
			start++
		}
		end := domainEnd(b, sign+1)
		if start == sign || end == 0 || string(b[start:sign]) == "git" || inURL(b, start) {
			continue
		}
		f(start, end)
		at = end
	}
}

func isLocal(c byte) bool { return chars.IsAlnum(c) || strings.IndexByte("._%+-", c) >= 0 }

// domain is a name with a dot in it, whose last label is its first group.
var domain = lazyregexp.New(`^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+([A-Za-z]{2,})(?:[^A-Za-z0-9]|$)`)

// domainEnd returns the end of the domain that begins at i; 0 where there is none.
func domainEnd(b []byte, i int) (end int) {
	at := domain.FindSubmatchIndex(b[i:min(len(b), i+maxDomain)])
	if at == nil || slices.Contains(noDomains, string(b[i+at[2]:i+at[3]])) {
		return 0
	}
	return i + at[3]
}

// inURL tells whether what begins at i stands behind the scheme of a URL.
func inURL(b []byte, i int) bool {
	for n := 0; i > 0 && n < maxDomain; n++ {
		i--
		switch c := b[i]; {
		case c == '/' && i > 1 && b[i-1] == '/' && b[i-2] == ':':
			return true
		case c <= ' ' || c == '/':
			return false
		}
	}
	return false
}

// costOf tells what looking at b costs: what may be a name takes longer, and so do signs of the beginning of a key in a long word.
func costOf(b []byte) int {
	const ofName, ofSign = 512, 6
	cost := len(b) + ofName*bytes.Count(b, []byte("="))
	for i := 0; i < len(b); i++ {
		from, signs := i, 0
		for ; i < len(b) && isToken(b[i]); i++ {
			if b[i] == '-' || b[i] == '_' {
				signs++
			}
		}
		cost += signs * (i - from) * ofSign
	}
	return cost
}

// tokens are the characters of keys.
var tokens = chars.NewSet("-_+/=")

func isToken(c byte) bool { return tokens[c] }

// What was found on a screen may be drawn again in part: its first row has left the screen, another window lies over it. A piece has
// nothing that says what it is, so it is known by what was found.

const (
	gram     = 8       // bytes of the shortest piece
	maxGrams = 1 << 16 // that are remembered
)

// found has the grams of what was found, and by which rule.
type found map[uint64]string

func gramOf(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func (f found) learn(rule string, value []byte) {
	if len(value) < 2*gram || len(f)+len(value) > maxGrams || rule == "email" || rule == "account" || masked(value) {
		return
	}
	for i := 0; i+gram <= len(value); i++ {
		if _, ok := f[gramOf(value[i:])]; !ok {
			f[gramOf(value[i:])] = rule
		}
	}
}

// each calls tell for each piece in b. What could be words is none.
func (f found) each(b []byte, tell func(start, end int, rule string)) {
	if len(f) == 0 {
		return
	}
	for i := 0; i+gram <= len(b); i++ {
		rule, ok := f[gramOf(b[i:])]
		if !ok {
			continue
		}
		start := i
		for i++; i+gram <= len(b); i++ {
			if _, ok := f[gramOf(b[i:])]; !ok {
				break
			}
		}
		if end := i + gram - 1; !names.Ordinary(string(b[start:end])) {
			tell(start, end, rule)
		}
	}
}
