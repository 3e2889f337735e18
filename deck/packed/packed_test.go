package packed_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
)

// An entry is one file of a test's recording.
type entry struct{ name, content string }

func blob(content string) entry {
	return entry{"run.tape.cas/" + cas.Sum([]byte(content)).String(), content}
}

// sample is a small recording, in order.
var sample = []entry{
	{"recording.json", "{}\n"}, {"run.tape", strings.Repeat("a line\n", 300)}, {"run.tape.annotations.jsonl", ""},
	blob("a blob"), {"run.tape.part/12", "part"}, {"seal.tiles/tile/0/x001/067.p", strings.Repeat("t", 512)},
	{"tree.json", strings.Repeat("x", 513)},
}

func indexOf(entries []entry) *packed.Index {
	ix := &packed.Index{ID: "an-id", State: "finished", Files: int64(len(entries))}
	for _, e := range entries {
		ix.Bytes += int64(len(e.content))
	}
	return ix
}

// pack packs entries; wrap is what each content is read through.
func pack(t testing.TB, entries []entry, wrap func(io.Reader) io.Reader) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := packed.NewWriter(&buf, indexOf(entries))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var r io.Reader = strings.NewReader(e.content)
		if wrap != nil {
			r = wrap(r)
		}
		if err := w.Add(e.name, int64(len(e.content)), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// unpack reads everything of a packed recording.
func unpack(b []byte, limits *packed.Limits) ([]entry, error) {
	r, err := packed.NewReaderOf(bytes.NewReader(b), int64(len(b)), limits)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return all(r)
}

func all(r *packed.Reader) ([]entry, error) {
	var out []entry
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return out, err
		}
		out = append(out, entry{f.Name, string(content)})
	}
}

func TestRoundTrip(t *testing.T) {
	got, err := unpack(pack(t, sample, nil), nil)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(sample) {
		t.Errorf("got %v, %v", got, err)
	}
	r, err := packed.NewReader(bytes.NewReader(pack(t, sample, nil)), int64(len(pack(t, sample, nil))), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if ix := r.Index(); ix.ID != "an-id" || ix.Files != int64(len(sample)) {
		t.Errorf("index %+v", ix)
	}
	n := 0
	for ; ; n++ { // skipping checks as reading does
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != len(sample) {
		t.Errorf("%d entries", n)
	}
}

// The bytes do not depend on how the contents are read.
func TestTheSameBytes(t *testing.T) {
	big := append(slices.Clone(sample), entry{"workspace.diff", strings.Repeat("0123456789 some text\n", 60_000)})
	want := pack(t, big, nil)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"halves": iotest.HalfReader, "late errors": iotest.DataErrReader,
	} {
		if !bytes.Equal(pack(t, big, wrap), want) {
			t.Errorf("%s: other bytes", name)
		}
	}
}

// Go's own tar reads it: the form is tar's and no dialect of ours.
func TestTarReadsIt(t *testing.T) {
	z, err := zstd.NewReader(bytes.NewReader(pack(t, sample, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	tr := tar.NewReader(z)
	for i := -1; ; i++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			if i != len(sample) {
				t.Errorf("%d entries", i)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if i >= 0 && (h.Name != sample[i].name || string(b) != sample[i].content || h.Mode != 0o644 || h.Uid != 0 || h.ModTime.Unix() != 0) {
			t.Errorf("entry %d: %+v %q", i, h, b)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "/", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".tmp-1", "a/.hidden", "Recording.json", "run.tape.CAS/x",
		"c:/x", `a\b`, "nul ", "a b", "a.", "-a", "a-", "é", "a\x00b", strings.Repeat("a", 101), "a/b/c/d/e/f/g/h/i", "pack.json",
		"run.tape.cas/abc", "run.tape.cas/" + strings.Repeat("A", 64),
	} {
		if err := packed.CheckName(name); !errors.Is(err, packed.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a/b/c/d/e/f/g/h", "seal.tiles/tile/8/0/000.p/5", "seal.tiles/tile/entries/x001/x234/067.p/5"} {
		if err := packed.CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, e := range sample {
		if err := packed.CheckName(e.name); err != nil {
			t.Error(err)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	for name, entries := range map[string][]entry{
		"disorder": {{"b", ""}, {"a", ""}}, "twice": {{"a", ""}, {"a", ""}}, "a bad name": {{"../a", ""}},
	} {
		w, err := packed.NewWriter(io.Discard, indexOf(entries))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			err = errors.Join(err, w.Add(e.name, int64(len(e.content)), strings.NewReader(e.content)))
		}
		if !errors.Is(err, packed.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
		if w.Close() == nil {
			t.Errorf("%s: closed", name)
		}
	}
	for name, content := range map[string]string{"short": "ab", "long": "abcd"} {
		w, err := packed.NewWriter(io.Discard, &packed.Index{Files: 1, Bytes: 3})
		if err != nil {
			t.Fatal(err)
		}
		if w.Add("a", 3, strings.NewReader(content)) == nil || w.Close() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestLimits(t *testing.T) {
	b := pack(t, sample, nil)
	for what, l := range map[string]*packed.Limits{"bytes": {Bytes: 10}, "files": {Files: 2}} {
		var le *packed.LimitError
		if _, err := unpack(b, l); !errors.As(err, &le) || le.What != what || le.Have <= le.Limit {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Every prefix, and everything with something behind it, is refused: what is told as whole is whole.
func TestCutAndGarbage(t *testing.T) {
	b := pack(t, sample, nil)
	for n := range len(b) {
		if _, err := unpack(b[:n], nil); !errors.Is(err, packed.ErrDamaged) && !errors.Is(err, packed.ErrNotPacked) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'h', 'i'}
	for name, tail := range map[string][]byte{"a byte": {0}, "a frame": b, "an empty frame": skippable} {
		if _, err := unpack(append(b[:len(b):len(b)], tail...), nil); !errors.Is(err, packed.ErrDamaged) {
			t.Errorf("%s behind the end: %v", name, err)
		}
	}
	if _, err := unpack(append(skippable, b...), nil); err == nil {
		t.Error("a frame before the beginning was taken")
	}
}
