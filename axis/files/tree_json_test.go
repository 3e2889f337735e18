package files

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// sampleTree has one of everything.
func sampleTree() *Tree {
	d := cas.Sum([]byte("x"))
	return &Tree{
		Root: "/home/u/\xffapp",
		Entries: []Entry{
			{Path: "a", Mode: Dir | 0o755},
			{Path: "a-b", Mode: Regular | 0o644, Size: 1, Digest: d},
			{Path: "a/.env", Mode: Regular | 0o600, Size: 1, Digest: d, Secret: "0123"},
			{Path: "a/\xff<&>", Mode: Regular | 0o755, Size: 1, Digest: d},
			{Path: "l", Mode: Link | 0o777, Target: "../\xfe"},
		},
		NotCovered: []NotCovered{{"node_modules", Ignored}, {"\xff", Special}},
	}
}

func TestTreeJSON(t *testing.T) {
	var buf bytes.Buffer
	want := sampleTree()
	must(t, want.Encode(&buf))
	got, err := DecodeTree(bytes.NewReader(buf.Bytes()))
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{
		`{"path":"a","mode":"040755"}`,
		`{"path":"a/.env","mode":"100600","size":1,"blake3":"` + cas.Sum([]byte("x")).String() + `","secret":"0123"},`,
		`{"path":"node_modules","reason":"ignored"},`,
	} {
		if !strings.Contains(buf.String(), "\n"+line) {
			t.Errorf("no line %s in\n%s", line, buf.String())
		}
	}
}

// partialTree has one of everything that only a partial tree has.
func partialTree() *Tree {
	t := sampleTree()
	t.Partial = true
	t.Absent = []string{"a/new", "gone", "\xff\xfe"}
	t.NotCovered = []NotCovered{{"a", TooMany}, {"big", TooLarge}}
	return t
}

func TestPartialTreeJSON(t *testing.T) {
	var buf bytes.Buffer
	want := partialTree()
	must(t, want.Encode(&buf))
	got, err := DecodeTree(bytes.NewReader(buf.Bytes()))
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{`,"raw":{"root":"L2hvbWUvdS//YXBw"},"partial":true,"entries":[`, `],"absent":[`, `{"path":"gone"},`} {
		if !strings.Contains(buf.String(), line+"\n") {
			t.Errorf("no line %s in\n%s", line, buf.String())
		}
	}
}

func TestTreeJSONEmpty(t *testing.T) {
	var buf bytes.Buffer
	must(t, (&Tree{Root: "/x"}).Encode(&buf))
	if _, err := DecodeTree(&buf); err != nil {
		t.Error(err)
	}
}

func TestDecodeTreeRefuses(t *testing.T) {
	digest := cas.Sum(nil).String()
	file := func(path string) string {
		return `{"path":"` + path + `","mode":"100644","size":0,"blake3":"` + digest + `"}`
	}
	wrap := func(entries string) string {
		return `{"version":1,"root":"/x","entries":[` + entries + `],"not_covered":[]}`
	}
	partial := func(entries, absent string) string {
		return `{"version":1,"root":"/x","partial":true,"entries":[` + entries + `],"not_covered":[],"absent":[` + absent + `]}`
	}
	if _, err := DecodeTree(strings.NewReader(partial(file("ok"), `{"path":"zz"}`))); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeTree(strings.NewReader(wrap(file("ok")))); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"up":               wrap(file("../x")),
		"up inside":        wrap(file("a/../../x")),
		"absolute":         wrap(file("/etc/passwd")),
		"dot":              wrap(file("./x")),
		"empty":            wrap(file("")),
		"double slash":     wrap(file("a//b")),
		"NUL":              wrap(file(`a\u0000b`)),
		"long name":        wrap(file(strings.Repeat("a", 256))),
		"through a link":   wrap(`{"path":"a","mode":"120777","target":"/etc"},` + file("a/passwd")),
		"through a file":   wrap(file("a") + "," + file("a/b")),
		"no parent":        wrap(file("a/b")),
		"twice":            wrap(file("a") + "," + file("a")),
		"order":            wrap(file("b") + "," + file("a")),
		"device":           wrap(`{"path":"a","mode":"020644"}`),
		"link, no target":  wrap(`{"path":"a","mode":"120777"}`),
		"dir with digest":  wrap(`{"path":"a","mode":"040755","size":0,"blake3":"` + digest + `"}`),
		"file, no digest":  wrap(`{"path":"a","mode":"100644","size":0}`),
		"negative size":    wrap(strings.Replace(file("a"), `"size":0`, `"size":-1`, 1)),
		"hostile digest":   wrap(strings.Replace(file("a"), digest, "../../etc/passwd", 1)),
		"unknown key":      wrap(strings.Replace(file("a"), `{`, `{"x":1,`, 1)),
		"raw disagrees":    wrap(strings.Replace(file("a"), `}`, `,"raw":{"path":"Li4veA=="}}`, 1)),
		"raw up":           wrap(strings.Replace(file(`../\ufffd`), `}`, `,"raw":{"path":"Li4v/w=="}}`, 1)),
		"huge value":       wrap(file(strings.Repeat("a/", 1<<16))),
		"version":          `{"version":2,"root":"/x","entries":[],"not_covered":[]}`,
		"trailing":         wrap("") + "{}",
		"cut":              wrap("")[:30],
		"nothing":          "",
		"not covered up":   `{"version":1,"root":"/x","entries":[],"not_covered":[{"path":"..","reason":"ignored"}]}`,
		"not covered why":  `{"version":1,"root":"/x","entries":[],"not_covered":[{"path":"a","reason":"whim"}]}`,
		"absent up":        partial("", `{"path":"../x"}`),
		"absent twice":     partial("", `{"path":"a"},{"path":"a"}`),
		"absent order":     partial("", `{"path":"b"},{"path":"a"}`),
		"absent below":     partial("", `{"path":"a/b"}`),
		"absent in a file": partial(file("a"), `{"path":"a/b"}`),
		"absent, there":    partial(file("a"), `{"path":"a"}`),
		"absent, more":     partial("", `{"path":"a","mode":"100644"}`),
		"partial, no bool": strings.Replace(partial("", ""), "true", `"yes"`, 1),
		"partial twice":    strings.Replace(partial("", ""), `"partial":true`, `"partial":true,"partial":true`, 1),
		"behind absent":    strings.TrimSuffix(partial("", ""), "}") + `,"more":[]}`,
		"key twice":        `{"version":1,"version":1,"root":"/x","entries":[],"not_covered":[]}`,
		"no entries":       `{"version":1,"root":"/x","not_covered":[]}`,
	}
	for name, text := range tests {
		if _, err := DecodeTree(strings.NewReader(text)); !errors.Is(err, ErrTree) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeTreeReadError(t *testing.T) {
	boom := errors.New("boom")
	if _, err := DecodeTree(failingReader{boom}); !errors.Is(err, boom) || errors.Is(err, ErrTree) {
		t.Error(err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func FuzzDecodeTree(f *testing.F) {
	var buf bytes.Buffer
	must(f, sampleTree().Encode(&buf))
	f.Add(bytes.Clone(buf.Bytes()))
	buf.Reset()
	must(f, partialTree().Encode(&buf))
	f.Add(bytes.Clone(buf.Bytes()))
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := DecodeTree(bytes.NewReader(b))
		if err != nil {
			return
		}
		var one, two bytes.Buffer
		must(t, tree.Encode(&one))
		again, err := DecodeTree(bytes.NewReader(one.Bytes()))
		must(t, err)
		must(t, again.Encode(&two))
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("encoded again:\n%s\n%s", one.Bytes(), two.Bytes())
		}
	})
}
