package fidelity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
)

// longTests runs with the full sizes: TAPEDECK_LONG=1 go test ./fidelity -run 'Hostile|Memory' -v
func longTests() bool { return os.Getenv("TAPEDECK_LONG") != "" }

// scale is how much smaller the bodies of a short run are.
func scale() int {
	if longTests() {
		return 1
	}
	return 16
}

// randomWords is a text of n bytes, about, that is unlike that of any other seed.
func randomWords(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "w%d ", r.Uint32N(50_000))
		if r.Uint32N(12) == 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func messages(n int, changed int) string {
	var b strings.Builder
	b.WriteString(`{"messages":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		word := "same"
		if i == changed {
			word = "other"
		}
		fmt.Fprintf(&b, `{"role":"user","content":"message %d, %s"}`, i, word)
	}
	return b.String() + "]}"
}

// TestHostileBodies compares bodies of hostile sizes: each must end within seconds, hold memory in proportion, and find
// something. A run without -short takes the full sizes.
func TestHostileBodies(t *testing.T) {
	n := scale()
	long := strings.Repeat("lorem ipsum ", (64<<20)/12/n)
	list := func(from int) string {
		return "[" + strings.Join(strings.Fields(fmt.Sprint(numbers(from, 500_000/n))), ",") + "]"
	}
	tests := []struct {
		name, a, b string
		coarse     bool
	}{
		{"a text of 64 MiB with one other word", `{"text":"` + long + `left ` + long[:1000] + `"}`, `{"text":"` + long + `right ` + long[:1000] + `"}`, false},
		{"a text of 64 MiB that is no JSON", long + "left" + long[:1000], long + "right" + long[:1000], false},
		{"1,000,000 messages", messages(1_000_000/n, -1), messages(1_000_000/n, 500_000/n), n == 1},
		{"300,000 messages", messages(300_000/n, -1), messages(300_000/n, 150_000/n), false},
		{"two texts of 1 MB", randomWords(1, 1<<20), randomWords(2, 1<<20), true},
		{"two texts of 1 MB in JSON", quoted(randomWords(1, 1<<20)), quoted(randomWords(2, 1<<20)), true},
		{"lists without an equal element", list(0), list(10_000_000), true},
		{"deep", strings.Repeat("[", 9000) + "1" + strings.Repeat("]", 9000), strings.Repeat("[", 9000) + "2" + strings.Repeat("]", 9000), false},
		{"one line of 16 MiB and another", randomWords(3, 16<<20/n), randomWords(4, 16<<20/n), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			begun := time.Now()
			got := DiffJSON([]byte(tt.a), []byte(tt.b))
			took := time.Since(begun)
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d changes, %v, %d MiB allocated, last %+v", len(got), took, allocated, got[len(got)-1])
			if len(got) == 0 || len(got) > bodies.MaxChanges {
				t.Errorf("%d changes", len(got))
			}
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if limit := uint64(600 + 40*(len(tt.a)+len(tt.b))>>20); allocated > limit {
				t.Errorf("allocated %d MiB, more than %d", allocated, limit)
			}
			if coarse := anyCoarse(got); coarse != tt.coarse && longTests() {
				t.Errorf("says that it was coarse: %v, want %v", coarse, tt.coarse)
			}
		})
	}
}

func numbers(from, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i
	}
	return out
}

func quoted(s string) string { return bodies.Quote(s) }

func anyCoarse(cs []Change) bool {
	for _, c := range cs {
		if c.Coarse != "" {
			return true
		}
	}
	return false
}

// meaning decodes a body. A number is the double that it reads as, or, where it is an integer that no double holds, itself.
func meaning(body []byte) (v any, err error) {
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, err // a number that no double can be near, too
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	err = d.Decode(&v)
	return meant(v), err
}

func meant(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = meant(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = meant(v[k])
		}
	case json.Number:
		f, _ := v.Float64()
		digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(string(v)), "0")
		mantissa, _, _ := strings.Cut(strings.ToLower(digits), "e")
		switch fraction := strings.ContainsAny(string(v), ".eE"); {
		case f != 0 && fraction && len(strings.TrimRight(mantissa, "0")) > 17:
			return v
		case !fraction && strconv.FormatFloat(f+0, 'f', -1, 64) != string(v) && f != 0:
			return v
		}
		return f + 0
	}
	return v
}

// FuzzDiffJSON holds DiffJSON against encoding/json: no panic, a change exactly where the bodies mean something else.
func FuzzDiffJSON(f *testing.F) {
	for _, pair := range [][2]string{
		{`{"a":[1,2,{"b":"c d"}]}`, `{"a":[2,{"b":"c e"}]}`}, {"x\ny", "x\r\ny"}, {"a=1&b=2", "a=1&b=3"},
		{`{"a":1.0,"a":2}`, `{"a":2}`}, {"data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n"},
		{"--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nx\r\n--b--\r\n", "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\ny\r\n--b--\r\n"},
		{`[{"role":"user"},{"role":"model"}]`, `[{"role":"model"},{"role":"user"}]`}, {"[-0]", "[0.0]"}, {`"é\ud800"`, `"è"`},
		{"\xff\xfe", "\xff\xfd"}, {"", "\n"}, {"a\n", "a"}, {"  ", ""}, {`{"id":9007199254740993}`, `{"id":9007199254740992}`},
		{"[1234567890123456768]", "[1234567890123456800]"}, {"[1000000000000000000000]", "[1e21]"},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if DiffJSON(a, a) != nil {
			t.Error("a body differs from itself")
		}
		got := DiffJSON(a, b)
		if back := DiffJSON(b, a); (got == nil) != (back == nil) {
			t.Errorf("one way %v, the other %v", got, back)
		}
		if text := Summary(got, 0); (text == "") != (got == nil) || utf8.Valid(a) && utf8.Valid(b) && !utf8.ValidString(text) {
			t.Errorf("summary %q of %v", text, got)
		}
		va, errA := meaning(a)
		vb, errB := meaning(b)
		switch {
		case errA != nil || errB != nil:
			if string(a) != string(b) && got == nil && (!json.Valid(a) || !json.Valid(b)) {
				t.Errorf("%q and %q read as the same", a, b)
			}
		case !utf8.Valid(a) || !utf8.Valid(b): // encoding/json reads all bad bytes as one character
		case reflect.DeepEqual(va, vb) != (got == nil):
			t.Errorf("%q and %q: %+v", a, b, got)
		}
	})
}
