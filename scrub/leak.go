package scrub

import (
	"bytes"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

//go:generate go -C ../tools/gitleaks run . -o ../../scrub/gitleaks.go

// A leak is a shape of gitleaks as tools/gitleaks wrote it down. Nothing of it is compiled before one of its names stands
// in a text.
type leak struct {
	id    string
	names []string // what its evidence begins with, one of them; in lowercase where fold is set
	re    string   // of the secret; without assigned it begins with the name
	fold  bool     // the case of the names does not matter
	// assigned says that an assignment stands between the name and the secret: service_token = "…". See assignment.
	assigned bool
	says     bool   // the name, or what follows it before the sign, must say that it is a secret: see names.PartSays
	word     bool   // the name must begin a word
	alone    bool   // nor may a digit of base64 stand before it
	closed   bool   // nothing that could be more of a key may follow; else what follows is hidden too
	behind   string // what must stand before the name, at most lookBehind bytes
	entropy  float64
	allow    []string // expressions of what is no secret after all

	// What follows is there from the first time on that a name of it was met.
	once    sync.Once
	rule    string
	shape   *expression    // of an assigned one what stands behind the sign, its first group the secret
	before  *regexp.Regexp // nil for nothing
	allowed []*regexp.Regexp
}

// maxLeak is the length in bytes of the longest secret that such a shape finds: it bounds what one look at it costs.
const maxLeak = 4 << 10

func (l *leak) compile() {
	l.once.Do(func() {
		source := l.re
		if l.assigned {
			source = `(?:=|` + quotes + `){0,5}?(` + l.re + `)(?:[\s\v'"` + "`" + `;\\&,)\]}<>+/:=%|#?@]|\.(?:\W|\z)|\z)`
		}
		l.rule, l.shape = placeholders.RuleName(l.id), &expression{source: source, limit: maxLeak}
		if l.behind != "" {
			l.before = regexp.MustCompile(l.behind)
		}
		l.allowed = compiled(l.allow)
	})
}

func compiled(exprs []string) (out []*regexp.Regexp) {
	for _, re := range exprs {
		out = append(out, regexp.MustCompile(re))
	}
	return out
}

// fitsOne tells whether b fits one of some expressions.
func fitsOne(exprs []*regexp.Regexp, b []byte) bool {
	return slices.ContainsFunc(exprs, func(re *regexp.Regexp) bool { return re.Match(b) })
}

// A leakRule finds the leaks that begin with one name.
type leakRule struct {
	name              string
	fold              bool
	literal, assigned []*leak
	says              bool // the name says that it is a secret
	// trigger is where in the name the three bytes stand by which it is looked for. The secret that is assigned to a name
	// comes after it, so these may be its rarest; a key that begins with its name is looked for by the first ones.
	trigger int
}

// leakRules returns a rule for each name of leaks. They are made once: what a rule compiles, all Scrubbers use.
var leakRules = sync.OnceValue(func() (rules []*rule) {
	type key struct {
		name string
		fold bool
	}
	byName := make(map[key]*leakRule)
	var all []*leakRule
	for i := range leaks {
		l := &leaks[i]
		for _, name := range l.names {
			r := byName[key{name, l.fold}]
			if r == nil {
				r = &leakRule{name: name, fold: l.fold, says: names.PartSays([]byte(name))}
				byName[key{name, l.fold}] = r
				all = append(all, r)
			}
			if l.assigned {
				r.assigned = append(r.assigned, l)
			} else {
				r.literal = append(r.literal, l)
			}
		}
	}
	for _, r := range all {
		rules = append(rules, r.asRule())
	}
	return rules
})

// commonness says how many of a thousand letters of English are a, b, c …
var commonness = [26]float64{82, 15, 28, 43, 127, 22, 20, 61, 70, 2, 8, 40, 24, 67, 75, 19, 1, 60, 63, 91, 28, 10, 24, 2, 20, 1}

// commonParts stand in many words of code, however rare their letters are.
var commonParts = []string{"com", "con", "ype", "tok", "ext", "key", "pre", "par", "fun", "buf", "byt", "upd", "que", "bje", "typ"}

// chooseTrigger takes the rarest three bytes of the name of a service.
func (r *leakRule) chooseTrigger() {
	if len(r.literal) > 0 {
		return
	}
	least := math.Inf(1)
	for at := range min(len(r.name)-2, chars.LookBehind-2) {
		score := 1.0
		for k, c := range []byte(r.name[at : at+3]) {
			common := 20.0
			if c >= 'a' && c <= 'z' {
				common = commonness[c-'a']
			}
			if score *= common; k < 2 { // the first two decide how often the third is looked at
				score *= common
			}
		}
		if slices.Contains(commonParts, r.name[at:at+3]) {
			score *= 1e4
		}
		if score < least {
			least, r.trigger = score, at
		}
	}
}

func (r *leakRule) asRule() *rule {
	r.chooseTrigger()
	starts := []string{r.name[r.trigger:min(len(r.name), r.trigger+3)]}
	if r.fold {
		starts = anyCase(starts[0])
	}
	var names []string
	for _, l := range slices.Concat(r.literal, r.assigned) {
		names = append(names, l.id)
	}
	return &rule{starts, names, r.match}
}

func (r *leakRule) match(t text, i int) (span, outcome) {
	if i -= r.trigger; i < 0 {
		return span{}, miss
	}
	var o outcome
	if r.fold {
		o = t.literalFold(i, r.name)
	} else {
		o = t.literal(i, r.name)
	}
	if o != hit {
		return span{}, o
	}
	best, o := span{}, miss
	for _, l := range r.literal {
		s, found := l.at(t, i)
		if found == more {
			return span{}, more
		}
		if found == hit && (o == miss || s.end > best.end) {
			best, o = s, hit
		}
	}
	if o == hit || len(r.assigned) == 0 {
		return best, o
	}
	return r.assignedAt(t, i+len(r.name))
}

// at looks for a secret that begins with a name at i.
func (l *leak) at(t text, i int) (span, outcome) {
	if l.word && !chars.Boundary(t.b, i) || l.alone && !alone(t.b, i) {
		return span{}, miss
	}
	l.compile()
	groups, o := l.shape.match(t, i)
	if o != hit {
		return span{}, o
	}
	end := groups[1]
	if l.before != nil && !l.before.Match(t.b[max(0, i-chars.LookBehind):i]) {
		return span{}, miss
	}
	if l.closed {
		o = keyEnds(t, i, end)
	} else {
		end, o = t.run(end, chars.Token, maxLeak)
	}
	if o == more {
		return span{}, more
	}
	if o == miss || !l.secret(t.b[i:end]) {
		return span{}, miss
	}
	return span{start: i, end: end, rank: shaped, rule: l.rule}, hit
}

// secret tells whether what a shape fits is a secret, and not a word, a template or an example.
func (l *leak) secret(b []byte) bool {
	if l.entropy > 0 && entropy(b) <= l.entropy {
		return false
	}
	if l.assigned && !mixed(b) {
		return false
	}
	if fitsOne(l.allowed, b) {
		return false
	}
	lower := strings.ToLower(string(b))
	if slices.ContainsFunc(leakStopWords, func(word string) bool { return strings.Contains(lower, word) }) {
		return false
	}
	return !fitsOne(allowedLeaks(), b)
}

var allowedLeaks = sync.OnceValue(func() []*regexp.Regexp { return compiled(leakAllowed) })

// mixed tells whether b has digits and letters: what has not is a word, or a number.
func mixed(b []byte) bool {
	digits, letters := chars.Mixture(b)
	return digits > 0 && letters > 0
}

func entropy(b []byte) float64 {
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(b))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

// assignedAt looks for a secret that is assigned to a name that ends at i.
func (r *leakRule) assignedAt(t text, i int) (span, outcome) {
	sign, o := assignment.match(t, i)
	if o != hit {
		return span{}, o
	}
	filler := t.b[sign[2]:sign[3]]
	if saysDigest(filler) {
		return span{}, miss
	}
	says := r.says || names.PartSays(filler)
	for _, l := range r.assigned {
		if l.says && !says {
			continue
		}
		l.compile()
		groups, o := l.shape.match(t, sign[1])
		if o == more {
			return span{}, more
		}
		if o == hit && l.secret(t.b[groups[2]:groups[3]]) {
			return span{start: groups[2], end: groups[3], rank: shaped, rule: l.rule, context: true}, hit
		}
	}
	return span{}, miss
}

// quotes is a quotation mark or a blank, which may be escaped as in JSON, a form or a URL.
const quotes = `[\s\v'"` + "`" + `]|%2[027]|\\{1,9}["'nrt]`

// assignment is what stands between a name and what is assigned to it, as gitleaks bounds it: more words of the name (twitter_api_key), its
// first group, quotation marks and a sign.
var assignment = &expression{source: `([\w \t.-]{0,20})(?:` + quotes + `){0,3}(?:=>?|>|,|:{1,3}=|:|\|\||\?=)`, limit: maxLeak}

// digestWords are what the value after them is, and no secret. "h1" is that of go.sum.
var digestWords = []string{"h1", "sha1", "sha224", "sha256", "sha384", "sha512", "md5", "blake3", "digest", "checksum",
	"integrity", "commit", "rev", "revision", "hash", "etag", "sum"}

// saysDigest tells whether the last word of filler says that a digest follows.
func saysDigest(filler []byte) bool {
	last := bytes.TrimRight(filler, " \t")
	last = last[bytes.LastIndexAny(last, " \t._-")+1:]
	for _, w := range digestWords {
		if len(w) == len(last) && strings.EqualFold(w, string(last)) {
			return true
		}
	}
	return false
}

// alone tells whether no digit of base64 stands before i. A slash of a path and a blank of a form, as +, are none: a word stands
// before them.
func alone(b []byte, i int) bool {
	before := b[max(0, i-chars.LookBehind):i]
	if len(before) == 0 || !chars.Base64[b[i-1]] || b[i-1] == '=' || chars.AfterEscape(before) {
		return true
	}
	if chars.IsAlnum(b[i-1]) {
		return false
	}
	word := before[:len(before)-1]
	end := len(word)
	for len(word) > 0 && chars.IsAlnum(word[len(word)-1]) {
		word = word[:len(word)-1]
	}
	return (len(word) > 0 || i < chars.LookBehind) && isPlain(before[len(word):end])
}

// isPlain tells a word, which may be numbered, from a piece of base64.
func isPlain(word []byte) bool {
	const most = 12
	letters := bytes.TrimRight(word, "0123456789")
	return len(word) <= most && !bytes.ContainsFunc(letters, func(r rune) bool { return r < 'a' || r > 'z' })
}

// keyEnds tells whether a key that begins at start can end at i: what follows is no more of a word, of base64, or of a call. Where the key
// itself may be base64, what follows a plus sign or a slash tells.
func keyEnds(t text, start, i int) outcome {
	if i >= len(t.b) {
		return t.endedOr(hit)
	}
	switch c := t.b[i]; {
	case chars.Word[c] || strings.IndexByte("-([", c) >= 0:
		return miss
	case chars.Base64[c]:
		if bytes.ContainsAny(t.b[start:i], "_-.~") {
			return hit
		}
		return plainAt(t, i+1, c)
	}
	if t.b[i] != '.' {
		return hit
	}
	switch { // a dot with more behind it
	case i+1 == len(t.b):
		return t.endedOr(hit)
	case chars.Word[t.b[i+1]]:
		return miss
	}
	return hit
}

// plainAt tells whether a word follows at i, behind c, and no base64.
func plainAt(t text, i int, c byte) outcome {
	end := i
	for end < len(t.b) && chars.IsAlnum(t.b[end]) && end-i < chars.LookBehind {
		end++
	}
	switch {
	case end == len(t.b) && !t.final:
		return more
	case end == i && c == '=' || !isPlain(t.b[i:end]): // what ends in = is base64
		return miss
	}
	return hit
}

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

// match returns where the match at i and its groups begin and end in the text, as package regexp has them. The outcome is more where bytes
// that have not come could change that, and sometimes where one of them is only looked at.
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
