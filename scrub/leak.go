package scrub

import (
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
