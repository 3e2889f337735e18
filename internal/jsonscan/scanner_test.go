package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// values are JSON and what is not quite.
var values = []string{
	`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `1.5e+3`, `""`, `"a"`, ` { "a" : [ 1 , { "b" : "c" } , [ ] ] , "d" : null } `,
	`"12345678"`, `"1234567\n"`, `"\u0041\ud83d\ude00\ud800"`, `"\\\"\/\b\f\n\r\t"`, `{"a":"x\"y","b":[[[]]]}`, `[1,2,3]`, `[{"a":1},{"a":2}]`,
	``, ` `, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `{"a" 1}`, `{a:1}`, `"`, `"\`, `"\u12`, `"\x"`, "\"\x01\"",
	"\"12345678\x1f\"", `01`, `-`, `1.`, `1e`, `.5`, `+1`, `tru`, `nul`, `fals`, `True`, `NaN`, `{}{}`, `1 2`, `]`, `}`, `[}`, `{]`, `[1}`, `{"a":1]`, `[[]`,
	"\ufeff{}", "\"\xff\"", `{"a":1 "b":2}`, `'a'`, `// x`, "[1\v]", "\u00a0[]", `"\ud800\u"`, `"\ud83dX"`, `-01`, `00`, `1e+`, `[1 2]`,
}

func TestValidSaysWhatEncodingJSONSays(t *testing.T) {
	for _, v := range values {
		got, want := Valid([]byte(v)) == nil, json.Valid([]byte(v)) && utf8.ValidString(v)
		if got != want {
			t.Errorf("%q: valid is %v, want %v: %v", v, got, want, Valid([]byte(v)))
		}
	}
}

func TestTextIsDecodedAsEncodingJSONDoes(t *testing.T) {
	for n := range 40 {
		for _, escape := range []string{`\n`, `\u0000`, `\ud83d\ude00`, `\ud800`, `é`, `\"`} {
			v := `"` + strings.Repeat("x", n) + escape + strings.Repeat("y", n/2) + `"`
			var want string
			if err := json.Unmarshal([]byte(v), &want); err != nil {
				t.Fatal(err)
			}
			var s Scanner
			s.Reset([]byte(v))
			if got := s.Text(); got != want || s.End() != nil {
				t.Errorf("%s is read as %q, want %q: %v", v, got, want, s.Err())
			}
		}
	}
}

func TestLongTextWithEscapes(t *testing.T) {
	want := strings.Repeat("a line of text\n", 20_000) + "\x00"
	v, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var s Scanner
	s.Reset(v)
	if got := s.Text(); got != want || s.End() != nil {
		t.Errorf("%d bytes came back, want %d: %v", len(got), len(want), s.Err())
	}
}

func TestDepthIsBounded(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		inner, end := "1", "]"
		if open != "[" {
			end = "}"
		}
		nested := func(n int) []byte {
			return []byte(strings.Repeat(open, n) + inner + strings.Repeat(end, n))
		}
		if err := Valid(nested(MaxDepth)); err != nil {
			t.Errorf("%d times %q: %v", MaxDepth, open, err)
		}
		for _, n := range []int{MaxDepth + 1, 1_000_000} {
			if err := Valid(nested(n)); err == nil || !strings.Contains(err.Error(), "nested more than 10000 deep") {
				t.Errorf("%d times %q: %v", n, open, err)
			}
			if _, _, found := Duplicate(nested(n)); found {
				t.Errorf("%d times %q: a key stands twice", n, open)
			}
		}
	}
}

func TestMembersAreRead(t *testing.T) {
	var s Scanner
	s.Reset([]byte(` { "id" : "a\nb" , "n" : -7 , "u" : 18446744073709551615, "on" : true, "off":false, "none": null, "x" : [ 1 , {"y":2} ] } `))
	var id, x string
	var n int64
	var u uint64
	on, off, none := false, true, false
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			id = s.Text()
		case "n":
			n = s.Int()
		case "u":
			u = s.Uint()
		case "on":
			on = s.Bool()
		case "off":
			off = s.Bool()
		case "none":
			none = s.Null()
		case "x":
			x = string(s.Raw())
		default:
			t.Error("another key")
		}
	}
	if err := s.End(); err != nil || id != "a\nb" || n != -7 || u != 1<<64-1 || !on || off || !none || x != `[ 1 , {"y":2} ]` {
		t.Errorf("read %q %d %d %v %v %v %q, %v", id, n, u, on, off, none, x, err)
	}
}

func TestNumbersAreNeverRounded(t *testing.T) {
	for _, v := range []string{"9223372036854775808", "-9223372036854775809", "1.0", "1e3", "01", "-", `"1"`, "18446744073709551616"} {
		var s Scanner
		s.Reset([]byte(v))
		if n := s.Int(); s.End() == nil {
			t.Errorf("%s is read as %d", v, n)
		}
	}
	for v, want := range map[string]int64{"9007199254740993": 9007199254740993, "-9223372036854775808": -1 << 63, "0": 0, "-0": 0} {
		var s Scanner
		s.Reset([]byte(v))
		if n := s.Int(); n != want || s.End() != nil {
			t.Errorf("%s is read as %d: %v", v, n, s.Err())
		}
	}
}

func TestDuplicate(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		for i := range 100 {
			b.WriteString(`"k` + strings.Repeat("i", i) + `":1,`)
		}
		return "{" + b.String() + last + "}"
	}
	for v, want := range map[string]string{
		`{"a":1,"b":2}`:                      "",
		`{"a":1,"a":2}`:                      "a",
		`{"a":1,"\u0061":2}`:                 "a",
		`{"\u0061":1,"b":2,"\u0061":2}`:      "a",
		`{"\u0061":1,"\u0062":2}`:            "",
		`[{"a":1},{"a":1}]`:                  "",
		`{"a":{"a":{"a":1}},"b":[{"c":{}}]}`: "",
		`{"a":[{"b":1,"c":{"d":1,"d":2}}]}`:  "d",
		`{"a":{"b":1},"c":2,"b":3,"c":4}`:    "c",
		many(`"end":1`):                      "",
		many(`"kii":1`):                      "kii",
		many(`"x":1,"x":1`):                  "x",
		`"a"`:                                "",
	} {
		key, at, found := Duplicate([]byte(v))
		if key != want || found != (want != "") {
			t.Errorf("%.60s: %q at %d, %v", v, key, at, found)
		}
		if found && (at < 1 || v[at] != '"') {
			t.Errorf("%.60s: at %d", v, at)
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, v := range values {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Valid(b)
		if want := json.Valid(b) && utf8.Valid(b); want != (err == nil) {
			t.Fatalf("valid: %v, encoding/json says %v", err, want)
		}
		Duplicate(b)
		var s Scanner
		s.Reset(b)
		if text := s.Text(); s.End() == nil && utf8.Valid(b) {
			var want string
			if err := json.Unmarshal(b, &want); err != nil || want != text {
				t.Fatalf("%q is read as %q, want %q: %v", b, text, want, err)
			}
		}
	})
}
