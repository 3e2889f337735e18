package fidelity

import (
	"bytes"
	"strconv"
	"strings"
)

const (
	maxDepth   = 64        // how deep values are compared by structure; deeper ones are compared as text
	maxChanges = 1000      // of one body
	maxWork    = 4_000_000 // words of all texts of one body that are compared word by word
)

// DiffJSON returns where two bodies differ. JSON is compared by its structure: of an object plain values first, then lists
// and objects, each by key; elements of a list are aligned, so one inserted message is one Change and one that was moved
// is one too; text is compared word by word. Bodies that mean the same JSON have no change.
//
// Forms, multipart bodies and event streams are compared by their fields, parts and events, any other text line by line.
// Of what is no text the first byte that differs is the only Change.
//
// At most 1000 changes are listed. Time and memory are bounded by the lengths of the bodies; what was compared more coarsely
// for it says so.
func DiffJSON(a, b []byte) []Change { return diffBodies(a, b, nil) }

// diffBodies is DiffJSON without the changes that mask takes away; a nil mask takes none. Where nothing is left it returns
// all.
func diffBodies(a, b []byte, mask func(string) string) []Change {
	changes := maskedChanges(a, b, mask)
	if len(changes) == 0 && mask != nil {
		return maskedChanges(a, b, nil)
	}
	return changes
}

// maskedChanges is diffBodies where nothing may be left.
func maskedChanges(a, b []byte, mask func(string) string) []Change {
	if bytes.Equal(a, b) {
		return nil
	}
	d := &bodyDiff{mask: mask, words: maxWork}
	d.bodies(string(a), string(b))
	return d.changes
}

// bodyDiff collects the changes between two bodies.
type bodyDiff struct {
	a, b    string
	mask    func(string) string // nil masks nothing
	words   int                 // left of maxWork
	changes []Change
	// each is called with every place that differs, as it is written, and nothing else is listed; nil lists changes.
	each  func(at spot, was, now string)
	calls int // of each
}

// leaf hands a place over to each, and reports whether it did.
func (d *bodyDiff) leaf(at spot, was, now string) bool {
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
		d.value(spot{}, &na, &nb)
		return
	}
	if ja, jb, ok := asFields(a, b); ok && (ja != jb || d.each != nil) {
		d.bodies(ja, jb)
		return
	}
	if d.leaf(spot{}, a, b) {
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

// spot says where a value stands.
type spot struct {
	path  string
	in    string
	depth int
}

func (p spot) key(k string) spot {
	return spot{joinKey(p.path, k), p.in, p.depth + 1}
}

func (p spot) element(i int, name string) spot {
	in := p.in
	if in != "" && name != "" {
		in += " "
	}
	return spot{p.path + "[" + strconv.Itoa(i) + "]", in + name, p.depth + 1}
}

// full reports whether no more changes are listed, and says so at the last one.
func (d *bodyDiff) full() bool {
	if d.each != nil {
		return d.calls >= maxChanges
	}
	if len(d.changes) < maxChanges {
		return false
	}
	d.changes[maxChanges-1].Coarse = strconv.Itoa(maxChanges) + " changes are listed, there are more"
	return true
}

func (d *bodyDiff) add(at spot, c *Change) {
	if d.full() || d.leaf(at, c.Was, c.Now) {
		return
	}
	c.Path, c.In = at.path, at.in
	d.changes = append(d.changes, *c)
}

func (d *bodyDiff) added(at spot, n *node) {
	d.add(at, &Change{Op: Added, Now: shortJSON(d.b[n.from:n.to]), newText: clip(longestText(d.b, n))})
}

func (d *bodyDiff) removed(at spot, n *node) {
	d.add(at, &Change{Op: Removed, Was: shortJSON(d.a[n.from:n.to])})
}

func (d *bodyDiff) value(at spot, a, b *node) {
	kindA, kindB := d.a[a.from], d.b[b.from]
	switch {
	case a.hash == b.hash || d.full():
	case kindA != kindB, at.depth >= maxDepth:
		d.scalar(at, d.a[a.from:a.to], d.b[b.from:b.to])
	case kindA == '{':
		d.object(at, a, b)
	case kindA == '[':
		d.list(at, a, b)
	default:
		d.scalar(at, d.a[a.from:a.to], d.b[b.from:b.to])
	}
}

// scalar compares two values, as they are written, that are not both objects or both lists.
func (d *bodyDiff) scalar(at spot, a, b string) {
	if d.leaf(at, a, b) {
		return
	}
	if a[0] != '"' || b[0] != '"' {
		d.add(at, &Change{Op: Changed, Was: shortJSON(a), Now: shortJSON(b), newText: clip(plainText(b))})
		return
	}
	a, b = unquote(a), unquote(b)
	if d.alike(a, b) {
		return
	}
	p := d.pair(a, b)
	d.add(at, &Change{
		Op: Changed, Was: encodeJSON(p.was), Now: encodeJSON(p.now), Line: p.line, Coarse: p.coarse, newText: p.newText,
	})
}

// alike reports whether masking takes away what differs.
func (d *bodyDiff) alike(a, b string) bool { return a == b || d.mask != nil && d.mask(a) == d.mask(b) }

// pair compares two texts word by word while there is work left.
func (d *bodyDiff) pair(a, b string) *textPair {
	p := pairTexts(a, b, min(d.words, maxWords))
	d.words -= p.work
	return p
}

// object compares plain values first: a changed model must not hide behind a hundred messages.
func (d *bodyDiff) object(at spot, a, b *node) {
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
func (d *bodyDiff) member(at spot, a, b *node) {
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
	return encodeJSON(n.key) + ":" + of[n.from:n.to]
}

// list compares two lists. Equal elements hold their places; what lies between two of them is paired by likeness; what is
// left and stands elsewhere in the other list was moved.
func (d *bodyDiff) list(at spot, a, b *node) {
	ofA, ofB := unpaired(len(a.kids)), unpaired(len(b.kids))
	ms, coarse := alignWithin(hashes(a.kids), hashes(b.kids), maxSteps/4)
	for _, m := range ms {
		ofA[m.i], ofB[m.j] = m.j, m.i
	}
	moved := pairEqual(a.kids, b.kids, ofA, ofB)
	before := len(d.changes)
	i, j := 0, 0
	for _, m := range append(ms, match{len(a.kids), len(b.kids)}) {
		d.between(at, &gap{a: a.kids, b: b.kids, from: match{i, j}, to: m, ofA: ofA, ofB: ofB, moved: moved})
		i, j = m.i+1, m.j+1
	}
	if coarse && len(d.changes) > before && d.changes[len(d.changes)-1].Coarse == "" {
		d.changes[len(d.changes)-1].Coarse = "the lists differ in too much to be aligned well"
	}
}

func hashes(kids []node) []uint64 {
	out := make([]uint64, len(kids))
	for i := range kids {
		out[i] = kids[i].hash
	}
	return out
}

// pairEqual pairs the elements that have no counterpart yet with equal ones, and returns those of a by their places in b.
func pairEqual(a, b []node, ofA, ofB []int) map[int]int {
	free := make(map[uint64][]int)
	for j, i := range ofB {
		if i < 0 {
			free[b[j].hash] = append(free[b[j].hash], j)
		}
	}
	moved := make(map[int]int)
	for i, j := range ofA {
		if js := free[a[i].hash]; j < 0 && len(js) > 0 {
			ofA[i], ofB[js[0]] = js[0], i
			free[a[i].hash] = js[1:]
			moved[js[0]] = i
		}
	}
	return moved
}

// gap is what lies between two pairs of equal elements.
type gap struct {
	a, b     []node
	from, to match // to is outside
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
func (d *bodyDiff) between(at spot, g *gap) {
	as, bs := rest(g.ofA, g.from.i, g.to.i), rest(g.ofB, g.from.j, g.to.j)
	pairs := append(d.pairAlike(g, as, bs), match{len(as), len(bs)})
	x, y := 0, g.from.j
	for _, p := range pairs {
		for ; x < p.i; x++ {
			d.removed(at.element(as[x], d.nameOf(d.a, &g.a[as[x]])), &g.a[as[x]])
		}
		to := g.to.j
		if p.j < len(bs) {
			to = bs[p.j]
		}
		for ; y < to && !d.full(); y++ {
			d.alone(at, g, y)
		}
		if x < len(as) && p.j < len(bs) {
			n := &g.b[bs[p.j]]
			d.value(at.element(bs[p.j], d.nameOf(d.b, n)), &g.a[as[x]], n)
			x, y = x+1, bs[p.j]+1
		}
	}
}

// alone lists the new element j, which was added or moved.
func (d *bodyDiff) alone(at spot, g *gap, j int) {
	n := &g.b[j]
	here := at.element(j, d.nameOf(d.b, n))
	i, moved := g.moved[j]
	if !moved {
		d.added(here, n)
		return
	}
	d.add(here, &Change{Op: Moved, Was: at.path + "[" + strconv.Itoa(i) + "]", Now: here.path})
}

// nameOf says what an element is: the name of a tool in quotes, else a role or a type in brackets; "" for neither.
func (d *bodyDiff) nameOf(src string, n *node) string {
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
			return shorten(name)
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
