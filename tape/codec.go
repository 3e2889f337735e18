package tape

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A codec takes an object of the format through its keys, in one of four modes. A type states its keys once, as a walk
// in the format's order (known.fields), and each mode makes of that walk what it needs:
//
//   - writing appends every key and value to buf;
//   - walking reads the keys that stand in the input in just that order, which is how every producer writes them;
//   - finding puts one key that stood elsewhere into its place;
//   - checking names a required key that never came.
//
// So the order of the keys is written down once, input in that order is read without a look-up, and input in any other
// order is read all the same.
type codec struct {
	object
	scan scanner // reading
	last string  // reading: the key that was taken last, for errors
	buf  []byte  // writing
	err  error   // writing: the last value that could not be written

	stamp   stamp                 // writing: of the record before
	clean   func(b []byte) []byte // writing: RecorderOptions.Clean; nil takes nothing out
	scratch []byte                // writing: the string that clean is given
}

// object is the part of a codec that belongs to the object that it stands in.
type object struct {
	mode   mode
	tagged bool    // reading: the first key is "kind", which names what is walked
	want   []byte  // finding: the key to find
	found  bool    // finding: it was found
	n      uint    // keys walked by so far; the number of a key is its bit below
	must   uint64  // walking: the required keys
	seen   uint64  // reading: the keys that came
	start  int     // reading: where the value of the last key begins
	kept   []Field // reading: what Extra will hold; writing: what of it is not written yet
}

type mode uint8

const (
	writing mode = iota
	walking
	finding
	checking
)

// need says whether a key must be there, and when it is written.
type need uint8

const (
	required need = iota // must be there; always written
	always               // may be absent or null; always written
	optional             // may be absent or null; written when it is not zero
)

// walker is what a codec walks.
type walker interface {
	fields(c *codec)
}

// readObject reads the object that the scanner stands before into w. What w does not know, or knows and cannot tell
// from absent (an explicit null or zero of an optional key), ends up in kept.
func (c *codec) readObject(w walker, tagged bool) {
	c.object = object{mode: walking, tagged: tagged}
	c.scan.Begin('{')
	c.walk(w)
	c.mode = finding
	for c.scan.More('}') {
		c.want, c.found = c.scan.Key(), false
		c.walk(w)
		if !c.found {
			c.start = c.scan.Offset()
			c.scan.Skip()
			c.keep(string(c.want))
		}
	}
	if c.must&^c.seen != 0 {
		c.mode = checking
		c.walk(w)
	}
}

// walk takes the keys of w, and the one that names it, through the mode that the codec is in.
func (c *codec) walk(w walker) {
	c.n = 0
	if c.tagged && c.take("kind", required) {
		c.scan.Skip()
	}
	w.fields(c)
}

// keep remembers the value that was just read under name, as it stood.
func (c *codec) keep(name string) {
	if c.scan.Err() == nil {
		c.kept = append(c.kept, Field{Name: name, Value: slices.Clone(c.scan.Since(c.start))})
	}
}

// take reports whether the value of name comes next in the input and is to be read.
func (c *codec) take(name string, need need) bool {
	bit := uint64(1) << c.n
	c.n++
	switch c.mode {
	case walking:
		if need == required {
			c.must |= bit
		}
		if !c.scan.KeyIs(name) {
			return false
		}
	case finding:
		if c.found || string(c.want) != name {
			return false
		}
		c.found = true
	default:
		if need == required && c.seen&bit == 0 {
			c.last = "" // it is not the one that was read last
			c.scan.Fail("key %q is missing", name)
		}
		return false
	}
	c.last = name
	if c.seen&bit != 0 {
		c.scan.Fail("it stands twice")
	}
	c.seen |= bit
	return c.present(name, need)
}

// present reports whether the value that comes next is to be read. A null is not where the key may be absent; that of an
// optional key is kept.
func (c *codec) present(name string, need need) bool {
	next := c.scan.Peek()
	c.start = c.scan.Offset()
	if need == required || next != 'n' {
		return c.scan.Err() == nil
	}
	if c.scan.Null() && need == optional {
		c.keep(name)
	}
	return false
}

// took ends the reading of a value. An explicit zero of an optional key is kept: it would not be written otherwise.
func (c *codec) took(name string, need need, zero bool) {
	if zero && need == optional {
		c.keep(name)
	}
}

// put reports whether the value of name is to be written now; its key is written already then.
func (c *codec) put(name string, need need, zero bool) bool {
	skip := zero && need == optional
	if len(c.kept) > 0 {
		if f, ok := c.claim(name); ok && skip {
			c.field(f)
		}
	}
	if !skip {
		c.key(name)
	}
	return !skip
}

// claim takes the field called name out of those that are still to be written.
func (c *codec) claim(name string) (Field, bool) {
	i := slices.IndexFunc(c.kept, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	f := c.kept[i]
	c.kept = slices.Concat(c.kept[:i], c.kept[i+1:]) // a copy: the slice is the caller's
	return f, true
}

// rest writes the fields that no key claimed. Reading, it does nothing.
func (c *codec) rest() {
	if c.mode != writing {
		return
	}
	if c.kept == nil {
		return
	}
	for _, f := range c.kept {
		c.field(f)
	}
	c.kept = nil
}

func (c *codec) field(f Field) {
	c.comma()
	c.set(jsonscan.AppendText(c.buf, f.Name))
	c.buf = append(c.buf, ':')
	c.raw(f.Value)
}

// key writes a key with what stands before and behind it. It makes room once: most of a short record is keys.
func (c *codec) key(name string) {
	const around = len(`,"":`)
	if cap(c.buf)-len(c.buf) < len(name)+around {
		c.buf = slices.Grow(c.buf, len(name)+around)
	}
	buf := c.buf
	n := len(buf)
	buf = buf[:n+len(name)+around]
	if last := buf[n-1]; last != '{' && last != '[' {
		buf[n] = ','
		n++
	}
	buf[n] = '"'
	n += 1 + copy(buf[n+1:], name)
	buf[n], buf[n+1] = '"', ':'
	c.buf = c.buf[:n+2]
}

// set makes b, which is buf with something appended, buf. Where it has not moved, its length alone is stored: a pointer that is
// stored while memory is collected has its cost.
func (c *codec) set(b []byte) {
	if cap(b) == cap(c.buf) {
		c.buf = c.buf[:len(b)]
		return
	}
	c.buf = b
}

// comma separates what comes next from what stands before it in the same object or list.
func (c *codec) comma() {
	if last := c.buf[len(c.buf)-1]; last != '{' && last != '[' {
		c.buf = append(c.buf, ',')
	}
}

// raw writes JSON that came from elsewhere. What is no JSON would spoil the line: null stands in its place and err says
// so. Newlines between its tokens would too, and are dropped.
func (c *codec) raw(v json.RawMessage) {
	v = c.cleaned(v)
	if err := jsonscan.Valid(v); err != nil {
		c.err = err
		v = json.RawMessage("null")
	}
	c.buf = jsonscan.AppendLine(c.buf, v)
}

// empty is what a required payload that is nil is written as: the format has no null there, and readers of other
// producers would refuse the tape.
var empty = inline(nil)
