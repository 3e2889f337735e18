package jsonscan

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// A Value reads itself: the type of a field that Into fills by itself.
type Value interface{ ReadJSON(s *Scanner) }

// Into reads an object into the struct that to points to, by the json tags of its fields, of which one may have several names
// (`json:"arguments|input"`). A field is a string, a bool, an int, an int64, a []byte for any value as it stands in the input, a
// struct, a slice of structs, or a Value; a []byte named "*" gets the whole value as it stands, whatever its kind. Keys that no
// field has are stepped over, a null sets nothing, and of a key that stands twice the last one counts.
//
// What is of another kind than its field is stepped over too: for forms of others, which change.
func Into(s *Scanner, to any) { into(s, to, false) }

// Strictly is Into for forms that do not change: what is of another kind than its field is an error, and so is a key of a field
// that stands twice.
func Strictly(s *Scanner, to any) { into(s, to, true) }

// First is Into for a form that begins with what is looked for: it stops when every field was read, and the rest of the value is
// not looked at.
func First(s *Scanner, to any) {
	v := reflect.ValueOf(to).Elem()
	if s.wants('{', "an object", false) {
		p := planOf(v.Type())
		p.members(s, v, false, uint64(1)<<len(p.names)-1)
	}
}

func into(s *Scanner, to any, strict bool) {
	v := reflect.ValueOf(to).Elem()
	planOf(v.Type()).read(s, v, strict)
}

// A plan is how a struct is read.
type plan struct {
	names  []string
	fields []planField // beside names
	whole  []int       // the index of the field "*"; nil for none
}

type planField struct {
	index []int
	read  func(s *Scanner, v reflect.Value, strict bool)
}

var plans sync.Map // reflect.Type → *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := new(plan)
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		switch tag {
		case "":
			continue
		case "*":
			p.whole = f.Index
			continue
		}
		names, _, _ := strings.Cut(tag, ",") // what follows is for writing
		for name := range strings.SplitSeq(names, "|") {
			p.names, p.fields = append(p.names, name), append(p.fields, planField{f.Index, readerOf(f.Type)})
		}
	}
	if len(p.names) > maxNames {
		panic(fmt.Sprintf("jsonscan: %s has %d names, more than %d", t, len(p.names), maxNames))
	}
	plans.Store(t, p)
	return p
}

func (p *plan) read(s *Scanner, v reflect.Value, strict bool) {
	s.Peek()
	from := s.i
	if s.wants('{', "an object", strict) {
		p.members(s, v, strict, 0)
	}
	if p.whole != nil && s.err == nil {
		v.FieldByIndex(p.whole).SetBytes(s.Since(from))
	}
}

// maxNames is how many names of a struct members can tell apart.
const maxNames = 63

// members reads the object that comes next, or of it no more than the names whose bits are all, where that is not 0.
func (p *plan) members(s *Scanner, v reflect.Value, strict bool, all uint64) {
	next, seen := 0, uint64(0)
	for s.Begin('{'); s.More('}'); {
		i := p.find(s.Key(), next)
		if i < 0 {
			s.Skip()
			continue
		}
		if strict && seen&(1<<i) != 0 {
			s.Fail("the key %q stands twice", p.names[i])
		}
		next, seen = i+1, seen|1<<i
		p.fields[i].read(s, v.FieldByIndex(p.fields[i].index), strict)
		if seen == all {
			return
		}
	}
}

// find returns the index of a name, -1 for none. It looks from one index on: keys stand in one order nearly always.
func (p *plan) find(key []byte, from int) int {
	for i := from; i < len(p.names); i++ {
		if p.names[i] == string(key) {
			return i
		}
	}
	for i := range p.names[:min(from, len(p.names))] {
		if p.names[i] == string(key) {
			return i
		}
	}
	return -1
}

// wants reports whether the value that comes next begins with c; another one is stepped over, and is an error where strict is
// true and it is no null.
func (s *Scanner) wants(c byte, what string, strict bool) bool {
	next := s.Peek()
	if next == c {
		return true
	}
	if strict && next != 'n' {
		s.Fail("want %s", what)
	}
	s.Skip()
	return false
}

var (
	valueType = reflect.TypeFor[Value]()
	bytesType = reflect.TypeFor[[]byte]()
)

func readerOf(t reflect.Type) func(*Scanner, reflect.Value, bool) {
	switch {
	case reflect.PointerTo(t).Implements(valueType):
		return func(s *Scanner, v reflect.Value, _ bool) { v.Addr().Interface().(Value).ReadJSON(s) }
	case t.ConvertibleTo(bytesType) && t.Kind() == reflect.Slice:
		return func(s *Scanner, v reflect.Value, _ bool) { v.SetBytes(s.Raw()) }
	}
	switch t.Kind() {
	case reflect.String:
		return readString
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int64:
		return readInt
	case reflect.Struct:
		return func(s *Scanner, v reflect.Value, strict bool) { planOf(t).read(s, v, strict) }
	case reflect.Pointer:
		elem := readerOf(t.Elem())
		return func(s *Scanner, v reflect.Value, strict bool) {
			if s.Null() {
				return
			}
			v.Set(reflect.New(t.Elem()))
			elem(s, v.Elem(), strict)
		}
	case reflect.Slice:
		return sliceReader(t)
	}
	panic(fmt.Sprintf("jsonscan: no field can be a %v", t))
}

func readString(s *Scanner, v reflect.Value, strict bool) {
	if s.wants('"', "a string", strict) {
		v.SetString(s.Text())
	}
}

func readBool(s *Scanner, v reflect.Value, strict bool) {
	if c := s.Peek(); c == 't' || c == 'f' {
		v.SetBool(s.Bool())
	} else {
		s.wants('t', "true or false", strict)
	}
}

func readInt(s *Scanner, v reflect.Value, strict bool) {
	if c := s.Peek(); c >= '0' && c <= '9' || c == '-' {
		v.SetInt(s.Int())
	} else {
		s.wants('0', "an integer", strict)
	}
}

func sliceReader(t reflect.Type) func(*Scanner, reflect.Value, bool) {
	elem := readerOf(t.Elem())
	return func(s *Scanner, v reflect.Value, strict bool) {
		if !s.wants('[', "a list", strict) {
			return
		}
		list := reflect.MakeSlice(t, 0, 0)
		for s.Begin('['); s.More(']'); {
			list = reflect.Append(list, reflect.Zero(t.Elem()))
			elem(s, list.Index(list.Len()-1), strict)
		}
		v.Set(list)
	}
}
