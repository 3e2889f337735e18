package sessionlog

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A codec takes an object of the format through its keys, in one of three modes. A type states its keys once, as a walk in
// the order in which they are written (walker.fields), and each mode makes of that walk what it needs:
//
//   - writing appends the keys and values to buf;
//   - finding reads the value of one key into its place;
//   - settling notes what the object had otherwise than it would be written.
type codec struct {
	mode mode
	s    *jsonscan.Scanner // finding
	buf  []byte            // writing
	open bool              // writing: the object has no key yet
	err  *error            // writing: the first value that could not be written

	last  string // writing: the key that was written last
	want  []byte // finding
	found bool
	n     uint   // keys walked by so far; the number of a key is its bit below
	seen  uint64 // the keys that came
	had   *had
}

type mode uint8

const (
	writing mode = iota
	finding
	settling
)

// need says when a key is written.
type need uint8

const (
	required need = iota // always
	optional             // when it is not zero
)

// had is what an object that was read had otherwise than an object of ours would have it; zero where it is the same. A bit is
// the number of a key in its walk.
type had struct {
	absent uint64 // required, and not there
	null   uint64
	zero   uint64 // optional, zero, and there
}

// A walker is what a codec walks.
type walker interface {
	fields(c *codec)
	kept() (*had, *[]Field)
}

// readObject reads the object that s stands before. A known key that stands twice fails.
func readObject(s *jsonscan.Scanner, w walker) {
	had, extra := w.kept()
	c := codec{mode: finding, s: s, had: had}
	for s.Begin('{'); s.More('}'); {
		// The key stays valid while its own value is looked for: nothing is decoded before it is found.
		c.want, c.found, c.n = s.Key(), false, 0
		if w.fields(&c); !c.found {
			name := string(c.want)
			*extra = append(*extra, Field{Name: name, Value: append(json.RawMessage(nil), s.Raw()...)})
		}
	}
	c.mode, c.n = settling, 0
	w.fields(&c)
}

// appendObject appends the object of w. What is wrong with a value ends up in err.
func appendObject(dst []byte, w walker, err *error) []byte {
	had, extra := w.kept()
	c := codec{buf: append(dst, '{'), open: true, had: had, err: err}
	w.fields(&c)
	for _, f := range *extra {
		c.key(f.Name)
		c.raw(f.Value)
	}
	return append(c.buf, '}')
}

// take reports whether the value of a key is to be read or written now: zero says whether it is its zero value.
func (c *codec) take(name string, need need, zero bool) bool {
	bit := uint64(1) << c.n
	c.n++
	switch c.mode {
	case finding:
		return c.find(name, bit)
	case settling:
		c.settle(need, zero, bit)
		return false
	}
	switch {
	case !zero:
	case c.had.null&bit != 0:
		c.key(name)
		c.buf = append(c.buf, "null"...)
		return false
	case need == required && c.had.absent&bit != 0, need == optional && c.had.zero&bit == 0:
		return false
	}
	c.key(name)
	return true
}

func (c *codec) find(name string, bit uint64) bool {
	if c.found || string(c.want) != name {
		return false
	}
	c.found = true
	if c.seen&bit != 0 {
		c.s.Fail("key %q stands twice", name)
		return false
	}
	c.seen |= bit
	if c.s.Null() {
		c.had.null |= bit
		return false
	}
	return true
}

func (c *codec) settle(need need, zero bool, bit uint64) {
	switch {
	case need == required && c.seen&bit == 0:
		c.had.absent |= bit
	case need == optional && c.seen&bit != 0 && zero && c.had.null&bit == 0:
		c.had.zero |= bit
	}
}

// key writes a key with what stands before and behind it.
func (c *codec) key(name string) {
	if !c.open {
		c.buf = append(c.buf, ',')
	}
	c.open, c.last = false, name
	c.buf = append(jsonscan.AppendText(c.buf, name), ':')
}

// raw writes JSON that came from elsewhere, on one line. What is no JSON would spoil the line.
func (c *codec) raw(v json.RawMessage) {
	if err := jsonscan.Valid(v); err != nil && *c.err == nil {
		*c.err = fmt.Errorf("key %q: want JSON: %w", c.last, err)
	}
	c.buf = jsonscan.AppendLine(c.buf, v)
}

func (c *codec) text(name string, p *string, need need) {
	if !c.take(name, need, *p == "") {
		return
	}
	if c.mode == finding {
		*p = c.s.Text()
		return
	}
	c.buf = jsonscan.AppendText(c.buf, *p)
}

func number[T int | int64 | uint64](c *codec, name string, p *T, need need) {
	if !c.take(name, need, *p == 0) {
		return
	}
	if c.mode == finding {
		*p = jsonscan.Integer[T](c.s)
		return
	}
	c.buf = appendNumber(c.buf, *p)
}

func appendNumber[T int | int64 | uint64](dst []byte, n T) []byte {
	if n < 0 {
		return strconv.AppendInt(dst, int64(n), 10)
	}
	return strconv.AppendUint(dst, uint64(n), 10)
}

// numberOrNone is the way of a number of which zero is not none.
func numberOrNone[T int | int64 | uint64](c *codec, name string, p **T) {
	if !c.take(name, optional, *p == nil) {
		return
	}
	if c.mode == finding {
		n := jsonscan.Integer[T](c.s)
		*p = &n
		return
	}
	c.buf = appendNumber(c.buf, **p)
}

// exact is the way of a number with a fraction, which is kept as it stands.
func (c *codec) exact(name string, p *json.Number, need need) {
	if !c.take(name, need, *p == "") {
		return
	}
	if c.mode == finding {
		*p = json.Number(c.s.Number())
		return
	}
	n := json.RawMessage(*p)
	if len(n) == 0 {
		n = json.RawMessage("0")
	}
	c.raw(n)
}

func (c *codec) yes(name string, p *bool, need need) {
	if !c.take(name, need, !*p) {
		return
	}
	if c.mode == finding {
		*p = c.s.Bool()
		return
	}
	c.buf = strconv.AppendBool(c.buf, *p)
}

func (c *codec) yesOrNone(name string, p **bool) {
	if !c.take(name, optional, *p == nil) {
		return
	}
	if c.mode == finding {
		v := c.s.Bool()
		*p = &v
		return
	}
	c.buf = strconv.AppendBool(c.buf, **p)
}

// json is the way of a value that this package does not look into.
func (c *codec) json(name string, p *json.RawMessage, need need) {
	if !c.take(name, need, len(*p) == 0) {
		return
	}
	if c.mode == finding {
		*p = append(json.RawMessage(nil), c.s.Raw()...)
		return
	}
	if len(*p) == 0 {
		c.buf = append(c.buf, "null"...)
		return
	}
	c.raw(*p)
}

// list is the way of a list: one reads an element, put writes one.
func list[T any](c *codec, name string, p *[]T, need need, one func() T, put func(*T)) {
	if !c.take(name, need, len(*p) == 0) {
		return
	}
	if c.mode == finding {
		*p = []T{}
		for c.s.Begin('['); c.s.More(']'); {
			*p = append(*p, one())
		}
		return
	}
	c.buf = append(c.buf, '[')
	for i := range *p {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		put(&(*p)[i])
	}
	c.buf = append(c.buf, ']')
}

func (c *codec) texts(name string, p *[]string, need need) {
	list(c, name, p, need, func() string { return c.s.Text() }, func(s *string) { c.buf = jsonscan.AppendText(c.buf, *s) })
}

func (c *codec) jsons(name string, p *[]json.RawMessage, need need) {
	list(c, name, p, need,
		func() json.RawMessage { return append(json.RawMessage(nil), c.s.Raw()...) },
		func(v *json.RawMessage) { c.raw(*v) })
}

// objects is the way of a list of objects.
func objects[T any, P interface {
	*T
	walker
}](c *codec, name string, p *[]T, need need) {
	list(c, name, p, need, func() T {
		var v T
		readObject(c.s, P(&v))
		return v
	}, func(v *T) { c.buf = appendObject(c.buf, P(v), c.err) })
}

// object is the way of one object; zero says whether there is none to write.
func (c *codec) object(name string, w walker, need need, zero bool) {
	if !c.take(name, need, zero) {
		return
	}
	if c.mode == finding {
		readObject(c.s, w)
		return
	}
	c.buf = appendObject(c.buf, w, c.err)
}
