package sessionlog

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// An object is a struct of the format. Its keys are the json tags of its fields, in their order, which is the one that they are
// written in: a key is written always, or, with omitempty, when it is not zero. What an object that was read had otherwise, and
// keys that are not known, are kept, so that it is written as it was.
type object interface {
	kept() (*had, *[]Field)
}

// had is what an object that was read had otherwise than an object of ours would have it; zero where it is the same. A bit is
// the number of a key in its form.
type had struct {
	absent uint64 // required, and not there
	null   uint64
	zero   uint64 // optional, zero, and there
}

// A form is how a type of object stands in JSON.
type form struct{ keys []formKey }

type formKey struct {
	name     string
	optional bool
	index    []int
	value    valueForm
}

// A valueForm is how a type of value is read and written.
type valueForm struct {
	read  func(s *jsonscan.Scanner, v reflect.Value)
	write func(dst []byte, v reflect.Value) ([]byte, error)
}

var forms sync.Map // reflect.Type → *form

func formOf(t reflect.Type) *form {
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	f := new(form)
	var last []formKey // of Common: what stands behind the event's own
	common, isEvent := t.FieldByName("Common")
	for _, field := range reflect.VisibleFields(t) {
		tag, ok := field.Tag.Lookup("json")
		if !ok || tag == "-" {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		k := formKey{name, option == "omitempty", field.Index, valueFormOf(field.Type)}
		switch {
		case !isEvent || len(field.Index) == 1:
		case name == "turn":
			k.optional = common.Tag.Get("turn") == "optional"
		case name == "tape_seq":
			last = append(last, k)
			continue
		}
		f.keys = append(f.keys, k)
	}
	f.keys = append(f.keys, last...)
	forms.Store(t, f)
	return f
}

// readObject reads the object that s stands before. The kind of an event is known. A known key that stands twice fails.
func readObject(s *jsonscan.Scanner, o object) {
	_, tagged := o.(Event)
	v := reflect.ValueOf(o).Elem()
	f := formOf(v.Type())
	had, extra := o.kept()
	seen, next := uint64(0), 0
	for s.Begin('{'); s.More('}'); {
		key := s.Key()
		if tagged && string(key) == "kind" {
			s.Skip()
			continue
		}
		i := f.find(key, next)
		if i < 0 {
			name := string(key)
			*extra = append(*extra, Field{Name: name, Value: slices.Clone(s.Raw())})
			continue
		}
		bit, k := uint64(1)<<i, &f.keys[i]
		if seen&bit != 0 {
			s.Fail("key %q stands twice", k.name)
		}
		seen, next = seen|bit, i+1
		if s.Null() {
			had.null |= bit
		} else {
			k.value.read(s, v.FieldByIndex(k.index))
		}
	}
	for i := range f.keys {
		switch bit, k := uint64(1)<<i, &f.keys[i]; {
		case !k.optional && seen&bit == 0:
			had.absent |= bit
		case k.optional && seen&bit != 0 && had.null&bit == 0 && isZero(v.FieldByIndex(k.index)):
			had.zero |= bit
		}
	}
}

// find returns the number of a key, -1 for none. It looks from one number on: keys stand in their order nearly always.
func (f *form) find(key []byte, from int) int {
	for n := range f.keys {
		if i := (from + n) % len(f.keys); f.keys[i].name == string(key) {
			return i
		}
	}
	return -1
}

// isZero reports whether a value is that of a key that is not written where it is optional.
func isZero(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// appendObject appends an object, an event with its kind. The error is of the first value that could not be written.
func appendObject(dst []byte, o object) ([]byte, error) {
	v := reflect.ValueOf(o).Elem()
	had, extra := o.kept()
	dst = append(dst, '{')
	start := len(dst)
	key := func(name string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendText(dst, name), ':')
	}
	if e, ok := o.(Event); ok {
		key("kind")
		dst = jsonscan.AppendText(dst, string(KindOf(e)))
	}
	var failed error
	keep := func(name string, err error) {
		if err != nil && failed == nil {
			failed = fmt.Errorf("key %q: %w", name, err)
		}
	}
	keys := formOf(v.Type()).keys
	for i := range keys {
		bit, k := uint64(1)<<i, &keys[i]
		field := v.FieldByIndex(k.index)
		zero := isZero(field)
		switch {
		case zero && had.null&bit != 0:
			key(k.name)
			dst = append(dst, "null"...)
			continue
		case zero && !k.optional && had.absent&bit != 0, zero && k.optional && had.zero&bit == 0:
			continue
		}
		key(k.name)
		var err error
		dst, err = k.value.write(dst, field)
		keep(k.name, err)
	}
	for _, f := range *extra {
		key(f.Name)
		var err error
		dst, err = appendRaw(dst, f.Value)
		keep(f.Name, err)
	}
	return append(dst, '}'), failed
}

// appendRaw appends JSON that came from elsewhere, on one line. What is no JSON would spoil the line.
func appendRaw(dst, v []byte) ([]byte, error) {
	var err error
	if wrong := jsonscan.Valid(v); wrong != nil {
		err = fmt.Errorf("want JSON: %w", wrong)
	}
	return jsonscan.AppendLine(dst, v), err
}

var (
	objectType = reflect.TypeFor[object]()
	numberType = reflect.TypeFor[json.Number]()
	rawType    = reflect.TypeFor[json.RawMessage]()
)

func valueFormOf(t reflect.Type) valueForm {
	switch {
	case t == numberType:
		return exactForm
	case t == rawType:
		return rawForm
	case reflect.PointerTo(t).Implements(objectType):
		return valueForm{readOne, appendOne}
	}
	switch t.Kind() {
	case reflect.String:
		return textForm
	case reflect.Bool:
		return boolForm
	case reflect.Int, reflect.Int64:
		return intForm
	case reflect.Uint64:
		return uintForm
	case reflect.Pointer:
		return pointerForm(t)
	case reflect.Slice:
		return listForm(t)
	}
	panic(fmt.Sprintf("sessionlog: no field can be a %v", t))
}

var (
	textForm = valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) { v.SetString(s.Text()) },
		func(dst []byte, v reflect.Value) ([]byte, error) { return jsonscan.AppendText(dst, v.String()), nil },
	}
	boolForm = valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) { v.SetBool(s.Bool()) },
		func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(dst, v.Bool()), nil },
	}
	intForm = valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) { v.SetInt(s.Int()) },
		func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(dst, v.Int(), 10), nil },
	}
	uintForm = valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) { v.SetUint(s.Uint()) },
		func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(dst, v.Uint(), 10), nil },
	}
	// exactForm is that of a number with a fraction, which is kept as it stands.
	exactForm = valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) { v.SetString(string(s.Number())) },
		func(dst []byte, v reflect.Value) ([]byte, error) {
			if v.Len() == 0 {
				return append(dst, '0'), nil
			}
			return appendRaw(dst, []byte(v.String()))
		},
	}
	// rawForm is that of a value that this package does not look into.
	rawForm = valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) { v.SetBytes(slices.Clone(s.Raw())) },
		func(dst []byte, v reflect.Value) ([]byte, error) {
			if v.Len() == 0 {
				return append(dst, "null"...), nil
			}
			return appendRaw(dst, v.Bytes())
		},
	}
)

func readOne(s *jsonscan.Scanner, v reflect.Value) { readObject(s, v.Addr().Interface().(object)) }

func appendOne(dst []byte, v reflect.Value) ([]byte, error) {
	return appendObject(dst, v.Addr().Interface().(object))
}

// pointerForm is that of a value of which zero is not none.
func pointerForm(t reflect.Type) valueForm {
	of := valueFormOf(t.Elem())
	return valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) {
			v.Set(reflect.New(t.Elem()))
			of.read(s, v.Elem())
		},
		func(dst []byte, v reflect.Value) ([]byte, error) { return of.write(dst, v.Elem()) },
	}
}

func listForm(t reflect.Type) valueForm {
	of := valueFormOf(t.Elem())
	return valueForm{
		func(s *jsonscan.Scanner, v reflect.Value) {
			v.Set(reflect.MakeSlice(t, 0, 0))
			for s.Begin('['); s.More(']'); {
				v.Set(reflect.Append(v, reflect.Zero(t.Elem())))
				of.read(s, v.Index(v.Len()-1))
			}
		},
		func(dst []byte, v reflect.Value) (_ []byte, err error) {
			dst = append(dst, '[')
			for i := range v.Len() {
				if i > 0 {
					dst = append(dst, ',')
				}
				var wrong error
				if dst, wrong = of.write(dst, v.Index(i)); err == nil {
					err = wrong
				}
			}
			return append(dst, ']'), err
		},
	}
}

// Unknown is an event of a kind that this package does not know. All its keys but those of Common are in Extra.
type Unknown struct {
	Common    `turn:"optional"`
	EventKind Kind
}

// ParseEvent reads one event, an object with a "kind". It shares no memory with b. The error is an *EventError: what is no
// JSON in UTF-8, no object, without a kind that is a string, has a known key twice, or a known key with a value of another
// type or out of range. Any other missing key reads as zero.
func ParseEvent(b []byte) (Event, error) {
	kind, err := kindOf(b)
	if err != nil {
		return nil, &EventError{Err: err}
	}
	return parseEvent(kind, b)
}

// parseEvent reads an event in UTF-8 whose kind is known and stands in it once.
func parseEvent(kind Kind, b []byte) (Event, error) {
	e := newEvent(kind)
	s := scanners.Get().(*jsonscan.Scanner)
	s.Reset(b)
	readObject(s, e)
	err := s.End()
	s.Reset(nil)
	scanners.Put(s)
	if err != nil {
		return nil, &EventError{EventKind: kind, Err: err}
	}
	return e, nil
}

// scanners are kept for the room that each has for strings with escapes.
var scanners = sync.Pool{New: func() any { return new(jsonscan.Scanner) }}

// kindOf returns the kind of an event that is valid JSON.
func kindOf(b []byte) (Kind, error) {
	if err := jsonscan.ValidUTF8(b); err != nil {
		return "", err
	}
	var s jsonscan.Scanner
	s.Reset(b)
	kind, found := Kind(""), false
	for s.Begin('{'); s.More('}'); {
		switch {
		case string(s.Key()) != "kind":
			s.Skip()
		case found:
			s.Fail(`key "kind" stands twice`)
		default:
			kind, found = Kind(s.Text()), true
		}
	}
	if err := s.End(); err != nil {
		return "", err
	}
	if !found {
		return "", errNoKind
	}
	return kind, nil
}

// AppendEvent appends the object of e on one line, without a newline: the kind, the keys of the format in its order, tape_seq,
// then what else the event has. An event that was read has the keys that it had, and no others unless they were set since.
// The error is an *EventError for a field that should hold JSON and holds none; dst is then as it was.
func AppendEvent(dst []byte, e Event) ([]byte, error) {
	out, err := appendObject(dst, e)
	if err != nil {
		return dst, &EventError{EventKind: KindOf(e), Err: err}
	}
	return out, nil
}

// JSON returns the object of p. The error says which field should hold JSON and holds none.
func (p *ProviderReplay) JSON() (json.RawMessage, error) {
	return appendObject(nil, p)
}

// A ProviderReplay is what a provider needs to go on with a conversation behind an answer, in its own form.
type ProviderReplay struct {
	Protocol         string            `json:"protocol"` // whose form it is
	Provider         string            `json:"provider,omitempty"`
	Model            string            `json:"model,omitempty"`
	NativeBlocks     []json.RawMessage `json:"native_blocks,omitempty"`
	ReasoningContent string            `json:"reasoning_content,omitempty"`
	ReasoningDetails json.RawMessage   `json:"reasoning_details,omitempty"`
	NativeMessage    json.RawMessage   `json:"native_message,omitempty"`
	ToolCalls        json.RawMessage   `json:"tool_calls,omitempty"`
	Extra            []Field           // further keys, as they stood

	had had
}

func (p *ProviderReplay) kept() (*had, *[]Field) { return &p.had, &p.Extra }
