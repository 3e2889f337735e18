package canonjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime/metrics"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"null", " null\n", "null"},
		{"booleans", "[true , false]", "[true,false]"},
		{"empty", `{"b":{},"a":[ ]}`, `{"a":[],"b":{}}`},
		{"nested objects are sorted", `{"z":[{"b":1,"a":2}],"y":{"d":0,"c":0}}`, `{"y":{"c":0,"d":0},"z":[{"a":2,"b":1}]}`},
		{"a prefix comes first", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		// RFC 8785, 3.2.3: the order of UTF-16 units is not the order of runes.
		{"order of keys", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew","1":"One","\ud83d\ude00":"Smile",` +
			`"\u0080":"Control","\u00f6":"O umlaut"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"O umlaut","€":"Euro Sign","😀":"Smile","` +
				"\ufb33" + `":"Hebrew"}`},
		// RFC 8785, 3.2.2 and its figure.
		{"scalars", `{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],` +
			`"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
				`"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"short escapes", `"\b\t\n\f\r\u0000\u001f\u007f"`, `"\b\t\n\f\r\u0000\u001f` + "\x7f" + `"`},
		{"nothing else is escaped", `"\u003c\u003e\u0026\u2028\u2029"`, "\"<>&\u2028\u2029\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canonjson.Canonical([]byte(tt.in))
			if err != nil || string(got) != tt.want {
				t.Errorf("Canonical(%s)\n got %s, %v\nwant %s", tt.in, got, err, tt.want)
			}
		})
	}
}

// TestNumbers holds samples of RFC 8785, appendix B: the bits of a double and its text.
func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
		{math.Float64bits(math.NaN()), "null"},
		{math.Float64bits(math.Inf(-1)), "null"},
	} {
		v := canonjson.Value{Kind: canonjson.Number, Num: math.Float64frombits(tt.bits)}
		if got := string(v.Append(nil)); got != tt.want {
			t.Errorf("%x: got %s, want %s", tt.bits, got, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		offset   int
	}{
		{"nothing", "", 0},
		{"white space", " \n", 2},
		{"two values", "1 2", 2},
		{"a key twice", `{"a":1,"b":2,"a":3}`, 13},
		{"a key twice, escaped", `{"a":1,"\u0061":3}`, 7},
		{"a high surrogate alone", `"x\ud800"`, 0},
		{"a low surrogate alone", `"\udc00x"`, 0},
		{"two high surrogates", `"\ud800\ud800"`, 0},
		{"not UTF-8", "\"a\xff\"", 2},
		{"a number too large", "[1e400]", 1},
		{"a leading zero", "-012", 2},
		{"a bare point", "1.", 2},
		{"a bare exponent", "1e+", 3},
		{"a plus", "+1", 0},
		{"a control character", "\"a\nb\"", 2},
		{"a control character after an escape", "\"\\t\n\"", 3},
		{"an unknown escape", `"\x41"`, 1},
		{"a short escape", `"\u12"`, 1},
		{"an open string", `"abc`, 4},
		{"an open escape", `"abc\`, 4},
		{"an open array", "[1", 2},
		{"a trailing comma", "[1,]", 3},
		{"a bare key", "{a:1}", 1},
		{"a missing colon", `{"a" 1}`, 5},
		{"an unknown word", "nul", 0},
		{"a long word", "nulls", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canonjson.Append([]byte("kept"), []byte(tt.in))
			var e *canonjson.Error
			if !errors.As(err, &e) || e.Offset != tt.offset || string(got) != "kept" {
				t.Errorf("Append(%q) = %q, %v; want an error at %d", tt.in, got, err, tt.offset)
			}
		})
	}
}

func TestManyKeysTwice(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		b.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
	}
	members := b.String()
	if _, err := canonjson.Parse([]byte("{" + members + `"last":1}`)); err != nil {
		t.Error(err)
	}
	for _, key := range []string{`"k"`, `"k` + strings.Repeat("x", 99) + `"`} {
		if _, err := canonjson.Parse([]byte("{" + members + key + ":2}")); err == nil {
			t.Errorf("key %s was taken twice", key)
		}
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := canonjson.Parse(nested(canonjson.MaxDepth)); err != nil {
		t.Errorf("depth %d: %v", canonjson.MaxDepth, err)
	}
	if _, err := canonjson.Parse(nested(canonjson.MaxDepth + 1)); err == nil {
		t.Errorf("depth %d was taken", canonjson.MaxDepth+1)
	}
}

func TestTree(t *testing.T) {
	v, err := canonjson.Parse([]byte(`{"model":"m","system":[{"text":"é","type":"text"}],"n":{"deep":[2,1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := v.Get("model"); !ok || m.Text() != "m" {
		t.Errorf("model: %v, %v", m, ok)
	}
	if d, ok := v.Path("n", "deep"); !ok || string(d.Append(nil)) != "[2,1]" {
		t.Errorf("n.deep: %v, %v", d, ok)
	}
	if _, ok := v.Path("model", "deep"); ok {
		t.Error("a string has a member")
	}
	if got := v.Members[2].Key; got != "n" {
		t.Errorf("third member is %q: the order of the source is lost", got)
	}
	s, _ := v.Get("system")
	if got := string(s.Elems[0].Append([]byte(">"))); got != `>{"text":"é","type":"text"}` {
		t.Errorf("system: %s", got)
	}
	if got := s.Kind.String() + " " + canonjson.Kind(99).String(); got != "array invalid" {
		t.Errorf("kinds: %s", got)
	}
}

func TestAppendDoesNotSortTheTree(t *testing.T) {
	v, err := canonjson.Parse([]byte(`{"b":1,"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(v.Append(nil)); got != `{"a":2,"b":1}` || v.Members[0].Key != "b" {
		t.Errorf("got %s, first member %q", got, v.Members[0].Key)
	}
}

// TestErrorsLeaveNothing parses what breaks off inside objects and arrays, and then what is whole, which has its own members
// alone.
func TestErrorsLeaveNothing(t *testing.T) {
	for range 3 {
		if _, err := canonjson.Parse([]byte(`{"a":[1,2,{"b":3,"c":[4,`)); err == nil {
			t.Fatal("half a text was taken")
		}
		got, err := canonjson.Canonical([]byte(`{"d":[{"e":5}],"c":6}`))
		if err != nil || string(got) != `{"c":6,"d":[{"e":5}]}` {
			t.Fatalf("got %s, %v", got, err)
		}
	}
}

// TestEndsOfText puts each byte that ends a text, and one that does not, at every place of a word of eight bytes.
func TestEndsOfText(t *testing.T) {
	for _, special := range []string{"\"", "\\", "\x00", "\x1f", "!", "\x7f", "é", "\u0080", "😀"} {
		for i := range 20 {
			in := strings.Repeat("~", i) + special + "z" + strings.Repeat(" ", i%9) + special
			text := canonjson.AppendString(nil, in)
			if got := decode(t, text); got != in {
				t.Errorf("%q became %s", in, text)
			}
			if v, err := canonjson.Parse(text); err != nil || v.Str != in {
				t.Errorf("%s was read as %q, %v", text, v.Str, err)
			}
			if _, err := canonjson.Parse([]byte(`"` + in + `"`)); (err != nil) != strings.ContainsAny(in, "\"\\\x00\x1f") {
				t.Errorf("%q: %v", in, err)
			}
		}
	}
}

// TestManyKeysSorted sorts objects of few and of many members alike.
func TestManyKeysSorted(t *testing.T) {
	for _, n := range []int{2, 15, 16, 17, 40} {
		var in, want []string
		for i := range n {
			want = append(want, fmt.Sprintf(`"k%02d":%d`, i, i))
			in = append(in, fmt.Sprintf(`"k%02d":%d`, i*7%n, i*7%n))
		}
		if n%7 == 0 {
			t.Fatal("7 does not reach all keys")
		}
		got, err := canonjson.Canonical([]byte("{" + strings.Join(in, ",") + "}"))
		if err != nil || string(got) != "{"+strings.Join(want, ",")+"}" {
			t.Errorf("%d members: %s, %v", n, got, err)
		}
	}
}

// TestOtherWriters: whatever encoding/json writes of a value, with or without indents and escapes, has one form.
func TestOtherWriters(t *testing.T) {
	value := rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)))
	rapid.Check(t, func(t *rapid.T) {
		m := value.Draw(t, "value")
		plain, _ := json.Marshal(m)
		indented, _ := json.MarshalIndent(m, "", "\t")
		one, err := canonjson.Canonical(plain)
		if err != nil {
			t.Fatalf("%s: %v", plain, err)
		}
		two, err := canonjson.Canonical(indented)
		if err != nil || string(one) != string(two) {
			t.Fatalf("%s\n%s, %v", one, two, err)
		}
	})
}

// Whatever the text is: what is taken is JSON of the same value, to the last digit of an integer, in a form that is its own,
// and memory is a small multiple of the text.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-0.5e-9,"\ud83d\ude00"],"":null}`, `"\u0041`, "[[[", "1e999", "{\"a\":1,\"a\":1}", "-0", "1e21", "123456789012345678",
		"[1234567890123456789,9007199254740993,1000000000000000000001,-0.12345678901234567891e-3]",
		`{"\ufb33":1,"\ud83d\ude00":2,"b":{"d":true,"c":false}}`, "\"\xff\"", `"\ud800"`, strings.Repeat("[", 2000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := allocated()
		once, err := canonjson.Canonical(src)
		if grown := allocated() - before; grown > 1<<20+512*uint64(len(src)) {
			t.Fatalf("%d bytes were allocated for a text of %d", grown, len(src))
		}
		if err != nil {
			var e *canonjson.Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(src) || len(once) > 0 {
				t.Fatalf("%q: %q, %v", src, once, err)
			}
			return
		}
		if !json.Valid(src) || !json.Valid(once) {
			t.Fatalf("%q became %q, which encoding/json refuses", src, once)
		}
		twice, err := canonjson.Canonical(once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q is not a fixed point: %q, %v", once, twice, err)
		}
		if want, got := decode(t, src), decode(t, once); !reflect.DeepEqual(want, got) {
			t.Fatalf("%q became %q, of another value", src, once)
		}
		if !sameDigits(t, src, once) {
			t.Fatalf("%q became %q, of other digits", src, once)
		}
	})
}

func decode(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return v
}

// allocated returns how many bytes this process has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// Every string is written to JSON that holds it.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\"\\/\b\f\n\r\t\x7f", "é\u2028\U0001f642", "\xff", "a\xe2\x82"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		text := canonjson.AppendString([]byte("x"), in)[1:]
		if got := decode(t, text); got != string([]rune(in)) {
			t.Fatalf("%q became %s", in, text)
		}
		if again, err := canonjson.Canonical(text); err != nil || string(again) != string(text) {
			t.Fatalf("%s is not canonical: %s, %v", text, again, err)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	message := `{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("a line of a prompt\\n", 50) + `"}]},`
	src := []byte(`{"model":"m","messages":[` + strings.Repeat(message, 200) + `{}]}`)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := canonjson.Canonical(src); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNumbers(b *testing.B) {
	src := []byte(`{"embedding":[` + strings.Repeat("-0.012345678901234567,12,1700000000000,", 500) + `0]}`)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := canonjson.Canonical(src); err != nil {
			b.Fatal(err)
		}
	}
}
