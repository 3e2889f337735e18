package tape_test

import (
	"reflect"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// everyKind is one record of each kind with two elements in every list.
func everyKind() []tape.Kind {
	return []tape.Kind{
		&tape.ClockRead{}, &tape.ClockSleep{}, &tape.LLMCall{}, &tape.HTTPExchange{}, &tape.FileRead{}, &tape.FileWrite{},
		&tape.FileDelete{}, &tape.ProcessSpawn{}, &tape.MCPJSONRPC{}, &tape.WSOpen{}, &tape.WSMessage{}, &tape.WSClose{},
		&tape.TLSRefused{}, &tape.NetRefused{}, &tape.DirList{}, &tape.EnvRead{}, &tape.FileStat{}, &tape.RandomRead{}, &tape.PolicyVerdict{},
	}
}

// TestStringsAreAll: each string that a kind can hold is listed once, whatever fields the kind gets: reflection finds them.
func TestStringsAreAll(t *testing.T) {
	for _, k := range everyKind() {
		want := make(map[*string]bool)
		makeStrings(reflect.ValueOf(k).Elem(), want)
		for _, p := range tape.Strings(k) {
			if !want[p] {
				t.Errorf("%s: a string is listed that is none of its own, or twice", k.Name())
			}
			delete(want, p)
		}
		if len(want) > 0 {
			t.Errorf("%s: %d strings are not listed", k.Name(), len(want))
		}
	}
}

// makeStrings makes every string of v be there, and notes it. Payloads, further keys and raw JSON are left out.
func makeStrings(v reflect.Value, found map[*string]bool) {
	switch v.Type() {
	case reflect.TypeFor[*tape.Payload](), reflect.TypeFor[[]tape.Field](), reflect.TypeFor[[]tape.ChunkField]():
		return
	}
	switch v.Kind() {
	case reflect.String:
		found[v.Addr().Interface().(*string)] = true
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		makeStrings(v.Elem(), found)
	case reflect.Struct:
		for i := range v.NumField() {
			makeStrings(v.Field(i), found)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			makeStrings(v.Index(i), found)
		}
	}
}

// TestExtras: what is changed there is written.
func TestExtras(t *testing.T) {
	for _, k := range everyKind() {
		e := tape.Extras(k)
		if e == nil {
			t.Errorf("%s has no further keys", k.Name())
			continue
		}
		*e = append(*e, tape.Field{Name: "added", Value: []byte("1")})
		if got := tape.Extras(k); len(*got) != 1 {
			t.Errorf("%s does not keep a further key", k.Name())
		}
	}
	if tape.Extras(&tape.Unknown{}) != nil {
		t.Error("an unknown kind has further keys beside its own")
	}
}

// TestFieldValue: the first field of that name counts, and none is nil.
func TestFieldValue(t *testing.T) {
	fields := []tape.Field{{Name: "a", Value: []byte("1")}, {Name: "b", Value: []byte("2")}, {Name: "b", Value: []byte("3")}}
	for name, want := range map[string]string{"a": "1", "b": "2", "c": ""} {
		if got := tape.FieldValue(fields, name); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestSamePayloads: the digest counts, whether the bytes are inline or not, and nil is the same as nil alone.
func TestSamePayloads(t *testing.T) {
	a, b := cas.Sum([]byte("a")), cas.Sum([]byte("b"))
	for _, tt := range []struct {
		p, q *tape.Payload
		want bool
	}{
		{nil, nil, true},
		{nil, &tape.Payload{}, false},
		{&tape.Payload{}, nil, false},
		{tape.PayloadOf(a, 1), &tape.Payload{Hash: a, Text: "a", Inline: true, Len: 1}, true},
		{tape.PayloadOf(a, 1), tape.PayloadOf(b, 1), false},
	} {
		if got := tt.p.Same(tt.q); got != tt.want {
			t.Errorf("%+v and %+v: %t", tt.p, tt.q, got)
		}
	}
}
