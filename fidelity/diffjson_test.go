package fidelity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
)

// ch is a Change without what its elements are called.
func ch(path string, op Op, was, now string) Change {
	return Change{Path: path, Op: op, Was: was, Now: now}
}

// bare leaves of changes what ch has.
func bare(changes []Change) []Change {
	var out []Change
	for _, c := range changes {
		out = append(out, ch(c.Path, c.Op, c.Was, c.Now))
	}
	return out
}

func TestDiffJSON(t *testing.T) {
	long := strings.Repeat("lorem ipsum dolor ", 20)
	tests := []struct {
		name, a, b string
		want       []Change
	}{
		{"equal bytes", `{"a":1}`, `{"a":1}`, nil},
		{"equal meaning", `{"a":1.0,"b":[]}`, "{\"b\":[ ],\n\"a\":1}", nil},
		{"number", `{"a":1}`, `{"a":2}`, []Change{ch("a", Changed, "1", "2")}},
		{
			"digits that no double holds", `{"id":1234567890123456788,"n":[18446744073709551615]}`,
			`{"n":[18446744073709551616],"id":1234567890123456789}`,
			[]Change{
				ch("id", Changed, "1234567890123456788", "1234567890123456789"),
				ch("n[0]", Changed, "18446744073709551615", "18446744073709551616"),
			},
		},
		{"zeros that are written out", `[1000000000000000000000,0.50000000000000000000]`, `[1e21,0.5]`, nil},
		{"type", `{"a":1}`, `{"a":"1"}`, []Change{ch("a", Changed, "1", `"1"`)}},
		{"null", `{"a":null}`, `{}`, []Change{ch("a", Removed, "null", "")}},
		{"key added", `{}`, `{"x y":{"z":true}}`, []Change{ch(`["x y"]`, Added, "", `{"z":true}`)}},
		{
			"one word in a message",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"write hello.txt now"}]}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"write bye.txt now"}]}]}`,
			[]Change{ch("messages[0].content[0].text", Changed, `"write hello.txt now"`, `"write bye.txt now"`)},
		},
		{
			"inserted message is one change",
			`{"m":[{"role":"user","content":"a"},{"role":"model","content":"b"}]}`,
			`{"m":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"model","content":"b"}]}`,
			[]Change{ch("m[0]", Added, "", `{"role":"system","content":"s"}`)},
		},
		{
			"inserted beside a changed one",
			`{"m":[{"role":"user","content":"please write the file"},{"role":"model","content":"b"}]}`,
			`{"m":[{"role":"user","content":"hi"},{"role":"user","content":"please write a file"},{"role":"model","content":"b"}]}`,
			[]Change{
				ch("m[0]", Added, "", `{"role":"user","content":"hi"}`),
				ch("m[1].content", Changed, `"please write the file"`, `"please write a file"`),
			},
		},
		{"removed tool", `["a","b","c"]`, `["a","c"]`, []Change{ch("[1]", Removed, `"b"`, "")}},
		{
			"long text is cut around the words", `"` + long + `left ` + long + `"`, `"` + long + `right ` + long + `"`,
			[]Change{ch("", Changed, `"…rem ipsum dolor lorem ipsum dolor left lorem ipsum dolor lorem…"`, "")},
		},
		{"not JSON", "a\nb\nc", "a\nB\nc", []Change{ch("line 2", Changed, `"b"`, `"B"`)}},
		{"more lines", "a\n", "a\nb\n", []Change{ch("line 2", Added, "", `"b"`)}},
		{"newline at the end", "a\n", "a", []Change{ch("line 1", Changed, "ends with a newline", "ends without a newline")}},
		{"empty before", "", "x", []Change{ch("", Added, "", `"x"`)}},
		{"empty after", "x", "", []Change{ch("", Removed, `"x"`, "")}},
		{"bytes", "a\xffb", "a\xfec", []Change{ch("byte 1", Changed, "3 bytes, here ff 62", "3 bytes, here fe 63")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := DiffJSON([]byte(tt.a), []byte(tt.b))
			if tt.name == "long text is cut around the words" {
				for i := range got {
					if !strings.Contains(got[i].Was, "left") || !strings.Contains(got[i].Now, "right") || len(got[i].Was) > 2*bodies.MaxShown {
						t.Errorf("got %+v", got[i])
					}
				}
				return
			}
			if d := cmp.Diff(tt.want, bare(got), cmp.AllowUnexported(Change{})); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestDiffJSONDeep(t *testing.T) {
	deep := func(leaf string) []byte {
		return []byte(strings.Repeat("[", 2000) + leaf + strings.Repeat("]", 2000))
	}
	if got := DiffJSON(deep("1"), deep("2")); len(got) != 1 {
		t.Fatalf("%d changes, want 1", len(got))
	}
}

func TestShortenPairShowsWhereTextWasInserted(t *testing.T) {
	before := strings.Repeat("a b ", 100)
	after := strings.Repeat("c d ", 100)
	was, now := bodies.ShortenPair(before+"middle "+after, before+"new middle "+after)
	if !strings.Contains(was, "middle") || !strings.Contains(now, "new middle") {
		t.Errorf("was %s\nnow %s", was, now)
	}
}

func TestSummary(t *testing.T) {
	changes := []Change{ch("a", Changed, "1", "2"), ch("b", Added, "", "3"), ch("c", Removed, "4", "")}
	want := "a\n  - 1\n  + 2\nb added\n  + 3\nand 1 more"
	if got := Summary(changes, 2); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := Summary(nil, 2); got != "" {
		t.Errorf("no changes: %q", got)
	}
}
