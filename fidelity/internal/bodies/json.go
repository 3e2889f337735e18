package bodies

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/align"
)

// Bounds of a comparison by structure.
const (
	maxDepth   = 64   // how deep values are compared by structure; deeper ones are compared as text
	MaxChanges = 1000 // of one body
)

// Diff returns where two bodies differ, without the changes that mask takes away; a nil mask takes none. Where nothing is left it
// returns all.
func Diff(a, b []byte, mask func(string) string) []Change {
	changes := maskedChanges(a, b, mask)
	if len(changes) == 0 && mask != nil {
		return maskedChanges(a, b, nil)
	}
	return changes
}

// DiffLines returns the lines in which two bodies differ, JSON too: the same value may be written in another way.
func DiffLines(a, b []byte) []Change {
	d := &bodyDiff{}
	d.text(string(a), string(b))
	return d.changes
}

// maskedChanges is Diff where nothing may be left.
func maskedChanges(a, b []byte, mask func(string) string) []Change {
	if bytes.Equal(a, b) {
		return nil
	}
	d := &bodyDiff{mask: mask}
	d.bodies(string(a), string(b))
	return d.changes
}

// Places calls each with every place at which two bodies differ: two values as they are written, with their key where they have one, or
// all of two texts.
func Places(a, b string, each func(at Spot, was, now string)) {
	d := &bodyDiff{each: each}
	d.bodies(a, b)
}

// bodyDiff collects the changes between two bodies.
type bodyDiff struct {
	a, b    string
	mask    func(string) string // nil masks nothing
	changes []Change
	// each is called with every place that differs, as it is written, and nothing else is listed; nil lists changes.
	each  func(at Spot, was, now string)
	calls int // of each
}

// leaf hands a place over to each, and reports whether it did.
func (d *bodyDiff) leaf(at Spot, was, now string) bool {
	if d.each == nil {
		return false
	}
	d.calls++
	d.each(at, was, now)
	return true
}

// bodies compares two bodies of any kind.
func (d *bodyDiff) bodies(a, b string) {
	na, whyA, okA := parseTree(a)
	nb, whyB, okB := parseTree(b)
	if okA && okB {
		d.a, d.b = a, b
		d.value(Spot{}, &na, &nb)
		return
	}
	if ja, jb, ok := asFields(a, b); ok && (ja != jb || d.each != nil) {
		d.bodies(ja, jb)
		return
	}
	if d.leaf(Spot{}, a, b) {
		return
	}
	d.text(a, b)
	if why := whyA + whyB; why != "" && len(d.changes) > 0 {
		if whyA != "" {
			why = whyA
		}
		d.changes[len(d.changes)-1].Coarse = why
	}
}

// A Spot says where a value stands: Path and In are those of a Change.
type Spot struct {
	Path  string
	In    string
	depth int
}

func (p Spot) key(k string) Spot {
	return Spot{joinKey(p.Path, k), p.In, p.depth + 1}
}

func (p Spot) element(i int, name string) Spot {
	in := p.In
	if in != "" && name != "" {
		in += " "
	}
	return Spot{p.Path + "[" + strconv.Itoa(i) + "]", in + name, p.depth + 1}
}

// full reports whether no more changes are listed, and says so at the last one.
func (d *bodyDiff) full() bool {
	if d.each != nil {
		return d.calls >= MaxChanges
	}
	if len(d.changes) < MaxChanges {
		return false
	}
	d.changes[MaxChanges-1].Coarse = strconv.Itoa(MaxChanges) + " changes are listed, there are more"
	return true
}

func (d *bodyDiff) add(at Spot, c *Change) {
	if d.full() || d.leaf(at, c.Was, c.Now) {
		return
	}
	c.Path, c.In = at.Path, at.In
	d.changes = append(d.changes, *c)
}

func (d *bodyDiff) added(at Spot, n *node) {
	d.add(at, &Change{Op: Added, Now: shortJSON(d.b[n.from:n.to]), NewText: clip(longestText(d.b, n))})
}

func (d *bodyDiff) removed(at Spot, n *node) {
	d.add(at, &Change{Op: Removed, Was: shortJSON(d.a[n.from:n.to])})
}

func (d *bodyDiff) value(at Spot, a, b *node) {
	kind := d.a[a.from]
	alike := kind == d.b[b.from] && at.depth < maxDepth
	switch {
	case a.hash == b.hash || d.full():
	case alike && kind == '{':
		d.object(at, a, b)
	case alike && kind == '[':
		d.list(at, a, b)
	default:
		d.scalar(at, d.a[a.from:a.to], d.b[b.from:b.to])
	}
}

// scalar compares two values, as they are written, that are not both objects or both lists.
func (d *bodyDiff) scalar(at Spot, a, b string) {
	if d.leaf(at, a, b) {
		return
	}
	if a[0] != '"' || b[0] != '"' {
		d.add(at, &Change{Op: Changed, Was: shortJSON(a), Now: shortJSON(b), NewText: clip(plainText(b))})
		return
	}
	a, b = unquote(a), unquote(b)
	if d.alike(a, b) {
		return
	}
	d.add(at, PairTexts(a, b).Change())
}

// alike reports whether masking takes away what differs.
func (d *bodyDiff) alike(a, b string) bool { return a == b || d.mask != nil && d.mask(a) == d.mask(b) }

// object compares plain values first: a changed model must not hide behind a hundred messages.
func (d *bodyDiff) object(at Spot, a, b *node) {
	for _, nested := range []bool{false, true} {
		i, j := 0, 0
		for i < len(a.kids) || j < len(b.kids) {
			var ka, kb *node
			if i < len(a.kids) && (j == len(b.kids) || a.kids[i].key <= b.kids[j].key) {
				ka = &a.kids[i]
			}
			if j < len(b.kids) && (i == len(a.kids) || b.kids[j].key <= a.kids[i].key) {
				kb = &b.kids[j]
			}
			if ka != nil {
				i++
			}
			if kb != nil {
				j++
			}
			if d.nested(ka, kb) == nested {
				d.member(at, ka, kb)
			}
		}
	}
}

func (d *bodyDiff) nested(a, b *node) bool {
	return a != nil && strings.IndexByte("{[", d.a[a.from]) >= 0 || b != nil && strings.IndexByte("{[", d.b[b.from]) >= 0
}

// member compares what stands under one key; nil where nothing does.
func (d *bodyDiff) member(at Spot, a, b *node) {
	switch {
	case b == nil:
		d.removed(at.key(a.key), a)
	case a == nil:
		d.added(at.key(b.key), b)
	case d.each != nil && a.hash != b.hash && !d.nested(a, b):
		d.leaf(at.key(a.key), d.memberText(d.a, a), d.memberText(d.b, b))
	case d.mask == nil || d.nested(a, b) || !d.alike(d.memberText(d.a, a), d.memberText(d.b, b)):
		d.value(at.key(a.key), a, b)
	}
}

// memberText is a member as masks know it that go by its name.
func (d *bodyDiff) memberText(of string, n *node) string {
	return Quote(n.key) + ":" + of[n.from:n.to]
}

// list compares two lists. Equal elements hold their places; what lies between two of them is paired by likeness; what is
// left and stands elsewhere in the other list was moved.
func (d *bodyDiff) list(at Spot, a, b *node) {
	ofA, ofB := align.Unpaired(len(a.kids)), align.Unpaired(len(b.kids))
	ms := align.ByOrder(a.kids, b.kids, func(n node) uint64 { return n.hash })
	for _, m := range ms {
		ofA[m.I], ofB[m.J] = m.J, m.I
	}
	moved := make(map[int]int) // of b, from where in a
	hash := func(kids []node) func(int) uint64 { return func(i int) uint64 { return kids[i].hash } }
	for _, i := range align.ByKey(ofA, ofB, hash(a.kids), hash(b.kids)) {
		moved[ofA[i]] = i
	}
	i, j := 0, 0
	for _, m := range append(ms, align.Match{I: len(a.kids), J: len(b.kids)}) {
		d.between(at, &gap{a: a.kids, b: b.kids, from: align.Match{I: i, J: j}, to: m, ofA: ofA, ofB: ofB, moved: moved})
		i, j = m.I+1, m.J+1
	}
}

// gap is what lies between two pairs of equal elements.
type gap struct {
	a, b     []node
	from, to align.Match // to is outside
	ofA, ofB []int
	moved    map[int]int
}

// rest lists the elements of the gap that have no counterpart.
func rest(of []int, from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		if of[i] < 0 {
			out = append(out, i)
		}
	}
	return out
}

// between lists the changes of one gap, in the order of the new list where both have something.
func (d *bodyDiff) between(at Spot, g *gap) {
	as, bs := rest(g.ofA, g.from.I, g.to.I), rest(g.ofB, g.from.J, g.to.J)
	pairs := append(d.pairAlike(g, as, bs), align.Match{I: len(as), J: len(bs)})
	x, y := 0, g.from.J
	for _, p := range pairs {
		for ; x < p.I; x++ {
			d.removed(at.element(as[x], nameOf(d.a, &g.a[as[x]])), &g.a[as[x]])
		}
		to := g.to.J
		if p.J < len(bs) {
			to = bs[p.J]
		}
		for ; y < to && !d.full(); y++ {
			d.alone(at, g, y)
		}
		if x < len(as) && p.J < len(bs) {
			n := &g.b[bs[p.J]]
			d.value(at.element(bs[p.J], nameOf(d.b, n)), &g.a[as[x]], n)
			x, y = x+1, bs[p.J]+1
		}
	}
}

// alone lists the new element j, which was added or moved.
func (d *bodyDiff) alone(at Spot, g *gap, j int) {
	n := &g.b[j]
	here := at.element(j, nameOf(d.b, n))
	i, moved := g.moved[j]
	if !moved {
		d.added(here, n)
		return
	}
	d.add(here, &Change{Op: Moved, Was: at.Path + "[" + strconv.Itoa(i) + "]", Now: here.Path})
}

// nameOf says what an element is: the name of a tool in quotes, else a role or a type in brackets; "" for neither.
func nameOf(src string, n *node) string {
	if src[n.from] != '{' {
		return ""
	}
	for _, inside := range []string{"", "function", "functionCall", "functionResponse", "toolSpec"} {
		m := n
		if inside != "" {
			m = n.member(src, inside)
		}
		if m == nil {
			continue
		}
		if name := m.text(src, "name"); name != "" {
			return Shorten(name)
		}
	}
	for _, key := range []string{"role", "type"} {
		if s := n.text(src, key); s != "" && s != "text" && len(s) <= 40 {
			return "(" + s + ")"
		}
	}
	return ""
}

// plainText is what a value, as it is written, says.
func plainText(raw string) string {
	if raw[0] == '"' {
		return unquote(raw)
	}
	return raw
}

// longestText returns the longest string in a value, or what is written where it is no object or list.
func longestText(src string, n *node) string {
	if strings.IndexByte("{[", src[n.from]) < 0 {
		return plainText(src[n.from:n.to])
	}
	best := ""
	for i := range n.kids {
		if strings.IndexByte("{[\"", src[n.kids[i].from]) < 0 {
			continue
		}
		if s := longestText(src, &n.kids[i]); len(s) > len(best) {
			best = s
		}
	}
	return best
}

// maxAlike bounds the table in which elements are paired by likeness. Longer runs are paired in order.
const maxAlike = 10_000

// maxLikeness is how many bytes of the start and of the end of a value tell how alike it is.
const maxLikeness = 4096

// pairAlike pairs the elements as of a gap with the elements bs that they most likely became, in order. The pairs are
// indices into as and bs. Elements that are no version of each other stay alone.
func (d *bodyDiff) pairAlike(g *gap, as, bs []int) (out []align.Match) {
	if len(as)*len(bs) > maxAlike || d.each != nil && len(as) == len(bs) {
		for i := range min(len(as), len(bs)) {
			out = append(out, align.Match{I: i, J: i})
		}
		return out
	}
	// score[i][j] is the best sum of likenesses that as[i:] and bs[j:] give.
	score, like := make([][]float64, len(as)+1), make([][]float64, len(as))
	score[len(as)] = make([]float64, len(bs)+1)
	for i := len(as) - 1; i >= 0; i-- {
		score[i], like[i] = make([]float64, len(bs)+1), make([]float64, len(bs))
		for j := len(bs) - 1; j >= 0; j-- {
			like[i][j] = d.likeness(&g.a[as[i]], &g.b[bs[j]])
			score[i][j] = max(score[i+1][j], score[i][j+1], like[i][j]+score[i+1][j+1])
		}
	}
	for i, j := 0, 0; i < len(as) && j < len(bs); {
		switch {
		case like[i][j] > 0 && score[i][j] == like[i][j]+score[i+1][j+1]:
			out = append(out, align.Match{I: i, J: j})
			i, j = i+1, j+1
		case score[i][j] == score[i+1][j]:
			i++
		default:
			j++
		}
	}
	return out
}

// likeness is 0 for two values that are no version of each other, else above 0 and at most 1: the share of what is
// written that a common start and a common end make up.
func (d *bodyDiff) likeness(a, b *node) float64 {
	if !d.sameShape(a, b) {
		return 0
	}
	ea, eb := d.a[a.from:a.to], d.b[b.from:b.to]
	return 0.05 + 0.95*float64(Alike(ea, eb))/float64(max(min(len(ea), 2*maxLikeness), min(len(eb), 2*maxLikeness), 1))
}

// sameShape reports whether a may have become b: values of one type, and objects that agree in what says what an element
// is (a user's message does not become a model's, nor one tool another).
func (d *bodyDiff) sameShape(a, b *node) bool {
	kindA, kindB := d.a[a.from], d.b[b.from]
	if kindA != '{' || kindB != '{' {
		return (kindA == '{') == (kindB == '{') && (kindA == '[') == (kindB == '[')
	}
	for _, k := range []string{"role", "type"} {
		if a.text(d.a, k) != b.text(d.b, k) {
			return false
		}
	}
	return nameOf(d.a, a) == nameOf(d.b, b)
}
