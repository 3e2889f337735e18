package toolschema

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A schema of a few hundred bytes can ask for a check of years: each of thirty definitions refers twice to the next. What a
// check may take is therefore counted.
var errCostly = errors.New("they take more checks by the tool's schema than one call may: make them smaller, or the schema simpler")

// maxNested is how many schemas may be under way in each other: one that leads back to itself goes no deeper into the value.
const maxNested = 5000

// A checking is the check of one value.
type checking struct {
	left   int
	nested int
	tracks bool
}

// A problem is what is wrong, and where: a JSON Pointer.
type problem struct{ at, what string }

// check says what v does not agree with; nil for nothing.
func (s *Schema) check(v *canonjson.Value) (err error) {
	c := &checking{left: maxChecks, tracks: s.tracks}
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if err, ok = p.(error); !ok {
				err = fmt.Errorf("%v", p)
			}
		}
	}()
	found, _ := c.apply(s.root, v, "")
	if len(found) == 0 {
		return nil
	}
	return errors.New(told(found))
}

// told are the first few problems by their texts.
func told(found []problem) string {
	var all []string
	for _, p := range found {
		if p.at == "" {
			p.at = "/"
		}
		all = append(all, fmt.Sprintf("%.300s (at %.200s)", p.what, p.at))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if more := len(all) - maxProblems; more > 0 {
		all = append(all[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

func (c *checking) spend(n int) {
	if c.left -= n; c.left < 0 {
		panic(errCostly)
	}
}

// apply holds v to n, and returns what of v was looked at.
//
// Looked at are elements by their index, members by their name; nil where nobody asks.
func (c *checking) apply(n *node, v *canonjson.Value, at string) (found []problem, looked map[string]bool) {
	c.spend(1 + len(at)/100)
	if c.nested++; c.nested > maxNested {
		panic(errCostly)
	}
	defer func() { c.nested-- }()
	if n.never {
		return []problem{{at, "false schema"}}, nil
	}
	a := &applied{checking: c, n: n, v: v, at: at}
	if c.tracks {
		a.looked = make(map[string]bool)
	}
	a.kind()
	if n.ref != nil {
		a.and(n.ref)
	}
	switch v.Kind {
	case canonjson.Number:
		a.number()
	case canonjson.String:
		a.text()
	case canonjson.Array:
		a.list()
	case canonjson.Object:
		a.object()
	}
	a.combined()
	a.unevaluated()
	return a.found, a.looked
}

// applied is one node that is held against one value.
type applied struct {
	*checking
	n      *node
	v      *canonjson.Value
	at     string
	found  []problem
	looked map[string]bool
}

func (a *applied) say(format string, args ...any) {
	a.found = append(a.found, problem{a.at, fmt.Sprintf(format, args...)})
}

// and holds the same value to another node, too.
func (a *applied) and(n *node) {
	found, looked := a.apply(n, a.v, a.at)
	a.found = append(a.found, found...)
	a.learn(found, looked)
}

// below holds what lies in the value to a node.
func (a *applied) below(n *node, v *canonjson.Value, token string) {
	found, _ := a.apply(n, v, a.at+"/"+token)
	a.found = append(a.found, found...)
	a.see(token)
}

// see notes that what lies in the value was looked at.
func (a *applied) see(token string) {
	if a.looked != nil {
		a.looked[token] = true
	}
}

// learn takes over what another node has looked at, unless it found something, and reports whether it found nothing.
func (a *applied) learn(found []problem, looked map[string]bool) bool {
	if len(found) == 0 && looked != nil {
		maps.Copy(a.looked, looked)
	}
	return len(found) == 0
}

// kind holds the value to its types, and to those that are enumerated.
func (a *applied) kind() {
	if a.n.types != nil {
		is := a.v.Kind.String()
		whole := a.v.Kind == canonjson.Number && (a.v.Str != "" || a.v.Num == math.Trunc(a.v.Num))
		if !slices.Contains(a.n.types, is) && (!whole || !slices.Contains(a.n.types, "integer")) {
			a.say("got %s, want %s", is, strings.Join(a.n.types, " or "))
		}
	}
	if a.n.allowed != nil {
		a.spend(weight(a.v))
		if !a.n.allowed[string(a.v.Append(nil))] {
			a.say("it is none of the %d values that are allowed", len(a.n.allowed))
		}
	}
}

// weight is how many values and bytes a comparison of v looks at, in checks.
func weight(v *canonjson.Value) int {
	n := 1 + len(v.Str)/100
	for i := range v.Elems {
		n += weight(&v.Elems[i])
	}
	for i := range v.Members {
		n += weight(&v.Members[i].Value)
	}
	return n
}

// A number is a JSON number by its decimal digits.
type number struct {
	*big.Rat
	text string
}

// numberOf is the number of v; false where it is none.
func numberOf(v *canonjson.Value) (*number, bool) {
	if v.Kind != canonjson.Number {
		return nil, false
	}
	text := string(v.Append(nil))
	r, ok := new(big.Rat).SetString(text)
	return &number{r, text}, ok
}

func (a *applied) number() {
	if a.n.of == nil && a.n.bounds == nil {
		return
	}
	is, ok := numberOf(a.v)
	if !ok {
		return
	}
	for _, b := range a.n.bounds {
		if d := b.side * is.Cmp(b.limit.Rat); d < 0 || d == 0 && b.strict {
			a.say("%s: got %s, want %s", b.keyword, is.text, b.limit.text)
		}
	}
	if of := a.n.of; of != nil && !new(big.Rat).Quo(is.Rat, of.Rat).IsInt() {
		a.say("multipleOf: got %s, want %s", is.text, of.text)
	}
}

func (a *applied) text() {
	a.within(&a.n.length, "Length", utf8.RuneCountInString(a.v.Str))
	if p := a.n.pattern; p != nil && !a.matches(p, a.v.Str) {
		a.say("'%.200s' does not match pattern '%s'", a.v.Str, p.text)
	}
	if a.n.format != "" && !isFormat(a.n.format, a.v.Str) {
		a.say("'%.200s' is not valid %s", a.v.Str, a.n.format)
	}
}

// matches reports whether a text matches. One that is too long for it ends the check.
func (c *checking) matches(p *pattern, text string) bool {
	c.spend(len(text) / 100)
	yes, err := p.Match(text)
	if err != nil {
		panic(err)
	}
	return yes
}

// within holds a count to what it may be.
func (a *applied) within(s *span, what string, is int) {
	switch {
	case is < s.min:
		a.say("min%s: got %d, want %d", what, is, s.min)
	case s.max >= 0 && is > s.max:
		a.say("max%s: got %d, want %d", what, is, s.max)
	}
}

func (a *applied) list() {
	a.within(&a.n.count, "Items", len(a.v.Elems))
	for i := range a.v.Elems {
		switch {
		case i < len(a.n.prefix):
			a.below(a.n.prefix[i], &a.v.Elems[i], strconv.Itoa(i))
		case a.n.items != nil:
			a.below(a.n.items, &a.v.Elems[i], strconv.Itoa(i))
		}
	}
	if a.n.unique {
		a.distinct()
	}
	if a.n.contains != nil {
		a.containing()
	}
}

func (a *applied) distinct() {
	first := make(map[string]int)
	for i := range a.v.Elems {
		a.spend(weight(&a.v.Elems[i]))
		text := string(a.v.Elems[i].Append(nil))
		if at, ok := first[text]; ok {
			a.say("items at %d and %d are equal", at, i)
			return
		}
		first[text] = i
	}
}

func (a *applied) containing() {
	n := 0
	for i := range a.v.Elems {
		if found, _ := a.apply(a.n.contains, &a.v.Elems[i], ""); len(found) == 0 {
			n++
			a.see(strconv.Itoa(i))
		}
	}
	switch s := a.n.containing; {
	case n < s.min:
		a.say("%d items match the contains schema, want %d at least", n, s.min)
	case s.max >= 0 && n > s.max:
		a.say("%d items match the contains schema, want %d at most", n, s.max)
	}
}

func (a *applied) object() {
	a.within(&a.n.members, "Properties", len(a.v.Members))
	has := make(map[string]bool, len(a.v.Members))
	for i := range a.v.Members {
		has[a.v.Members[i].Key] = true
	}
	a.demand(a.n.required, has, "")
	for name, needs := range a.n.needs {
		if has[name] {
			a.demand(needs, has, fmt.Sprintf(", required by '%s'", name))
		}
	}
	for name, n := range a.n.depending {
		if has[name] {
			a.and(n)
		}
	}
	var others []string
	for i := range a.v.Members {
		if m := &a.v.Members[i]; !a.member(m) {
			others = append(others, "'"+m.Key+"'")
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		a.say("additional properties %s not allowed", strings.Join(others, ", "))
	}
}

// demand says which of names are not there.
func (a *applied) demand(names []string, has map[string]bool, why string) {
	var missing []string
	for _, name := range names {
		if !has[name] {
			missing = append(missing, "'"+name+"'")
		}
	}
	switch len(missing) {
	case 0:
	case 1:
		a.say("missing property %s%s", missing[0], why)
	default:
		a.say("missing properties %s%s", strings.Join(missing, ", "), why)
	}
}

// member holds one to what is said of its name, and reports whether it may be there at all.
func (a *applied) member(m *canonjson.Member) bool {
	if a.n.names != nil {
		if found, _ := a.apply(a.n.names, &canonjson.Value{Kind: canonjson.String, Str: m.Key}, a.at); len(found) > 0 {
			a.say("invalid property name '%.200s': %s", m.Key, found[0].what)
		}
	}
	known := false
	hold := func(n *node) {
		known = true
		a.below(n, &m.Value, m.Key)
	}
	if n := a.n.properties[m.Key]; n != nil {
		hold(n)
	}
	for _, p := range a.n.patterns {
		if a.matches(p.pattern, m.Key) {
			hold(p.node)
		}
	}
	if more := a.n.additional; !known && more != nil {
		if more.never {
			return false
		}
		hold(more)
	}
	return true
}

// combined holds the value to what is made of other schemas.
func (a *applied) combined() {
	for _, n := range a.n.all {
		a.and(n)
	}
	if a.n.any != nil {
		most := 1
		if a.looked != nil {
			most = len(a.n.any) // somebody asks what each has looked at
		}
		a.matching(a.n.any, most)
	}
	if a.n.one != nil {
		if matched := a.matching(a.n.one, 2); len(matched) > 1 {
			a.say("'oneOf' failed, subschemas %d, %d matched", matched[0], matched[1])
		}
	}
	if a.n.not != nil {
		if found, _ := a.apply(a.n.not, a.v, a.at); len(found) == 0 {
			a.say("'not' failed")
		}
	}
	if a.n.when != nil {
		next := a.n.orElse
		if a.learn(a.apply(a.n.when, a.v, a.at)) {
			next = a.n.then
		}
		if next != nil {
			a.and(next)
		}
	}
}

// matching lists those of some schemas that the value agrees with, as far as the first most. Where there are none it says why.
func (a *applied) matching(some []*node, most int) (matched []int) {
	var all []problem
	for i, n := range some {
		found, looked := a.apply(n, a.v, a.at)
		all = append(all, found...)
		if a.learn(found, looked) {
			matched = append(matched, i)
		}
		if len(matched) == most {
			return matched
		}
	}
	if len(matched) == 0 {
		a.found = append(a.found, all...)
	}
	return matched
}

// unevaluated holds to its schemas what none has looked at.
func (a *applied) unevaluated() {
	if n := a.n.unevaluatedItems; n != nil {
		for i := range a.v.Elems {
			if token := strconv.Itoa(i); !a.looked[token] {
				a.below(n, &a.v.Elems[i], token)
			}
		}
	}
	if n := a.n.unevaluatedProperties; n != nil {
		for i := range a.v.Members {
			if m := &a.v.Members[i]; !a.looked[m.Key] {
				a.below(n, &m.Value, m.Key)
			}
		}
	}
}
