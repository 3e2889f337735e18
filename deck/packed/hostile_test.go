package packed_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
)

// compress makes one frame of a stream, of a kind that is taken.
func compress(t testing.TB, stream []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, err := zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(64<<10), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(stream); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// forge makes a packed file with headers of somebody else, behind an index that fits them.
func forge(t testing.TB, index string, headers ...*tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	all := append([]*tar.Header{{Name: "pack.json", Size: int64(len(index))}}, headers...)
	for i, h := range all {
		if h.Format == 0 {
			h.Format = tar.FormatUSTAR
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.ModTime.IsZero() {
			h.ModTime = time.Unix(0, 0)
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		body := index
		if i > 0 {
			body = strings.Repeat("x", int(h.Size))
		}
		if _, err := io.WriteString(w, body); err != nil && h.Typeflag == tar.TypeReg {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return compress(t, buf.Bytes())
}

func index(files, bytes string) string {
	return `{"format":1,"id":"x","state":"finished","files":` + files + `,"bytes":` + bytes + "}\n"
}

// A header by itself, made by Go's tar, is the one that pack writes: else every case of TestHostile would be refused for a
// reason of its own.
func TestForgeryIsTakenWhenItIsNone(t *testing.T) {
	got, err := unpack(forge(t, index("1", "3"), &tar.Header{Name: "run.tape", Size: 3}), nil)
	if err != nil || len(got) != 1 || got[0].content != "xxx" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestHostile(t *testing.T) {
	ok := index("1", "3")
	name := func(n string) []byte { return forge(t, ok, &tar.Header{Name: n, Size: 3}) }
	typed := func(flag byte) []byte {
		return forge(t, index("1", "0"), &tar.Header{Name: "run.tape", Typeflag: flag, Linkname: "/etc/passwd"})
	}
	for what, b := range map[string][]byte{
		"climbs":           name("../run.tape"),
		"climbs inside":    name("a/../../x"),
		"absolute":         name("/etc/cron.d/x"),
		"other case":       name("Run.Tape"),
		"hidden":           name(".git/hooks/post-checkout"),
		"backslash":        name(`..\x`),
		"drive":            name("c:x"),
		"symlink":          typed(tar.TypeSymlink),
		"hard link":        typed(tar.TypeLink),
		"character device": typed(tar.TypeChar),
		"block device":     typed(tar.TypeBlock),
		"fifo":             typed(tar.TypeFifo),
		"directory":        forge(t, index("1", "0"), &tar.Header{Name: "a/", Typeflag: tar.TypeDir}),
		"set-uid":          forge(t, ok, &tar.Header{Name: "run.tape", Size: 3, Mode: 0o4755}),
		"owned":            forge(t, ok, &tar.Header{Name: "run.tape", Size: 3, Uid: 1, Uname: "root"}),
		"dated":            forge(t, ok, &tar.Header{Name: "run.tape", Size: 3, ModTime: time.Unix(1, 0)}),
		"pax": forge(t, ok, &tar.Header{Name: "run.tape", Size: 3, Format: tar.FormatPAX,
			PAXRecords: map[string]string{"VENDOR.x": "y"}}),
		"gnu long name":       forge(t, ok, &tar.Header{Name: strings.Repeat("a/", 80) + "b", Size: 3, Format: tar.FormatGNU}),
		"duplicate":           forge(t, index("2", "6"), &tar.Header{Name: "a", Size: 3}, &tar.Header{Name: "a", Size: 3}),
		"disorder":            forge(t, index("2", "6"), &tar.Header{Name: "b", Size: 3}, &tar.Header{Name: "a", Size: 3}),
		"second index":        forge(t, index("1", "0"), &tar.Header{Name: "pack.json"}),
		"bytes over index":    forge(t, index("1", "2"), &tar.Header{Name: "a", Size: 3}),
		"files over index":    forge(t, index("1", "6"), &tar.Header{Name: "a", Size: 3}, &tar.Header{Name: "b", Size: 3}),
		"less than the index": forge(t, index("2", "3"), &tar.Header{Name: "a", Size: 3}),
		"blob of other bytes": name("run.tape.cas/" + cas.Sum([]byte("xxxx")).String()),
		"no blob":             name("run.tape.cas/readme"),
		"index with spaces":   forge(t, strings.Replace(ok, ":", ": ", 1), &tar.Header{Name: "a", Size: 3}),
		"index with a key":    forge(t, strings.Replace(ok, "{", `{"x":1,`, 1), &tar.Header{Name: "a", Size: 3}),
		"negative index":      forge(t, index("-1", "0")),
		"empty":               compress(t, nil),
		"zeros":               compress(t, make([]byte, 4096)),
		"no zstd":             []byte("recording.json"),
		"half a magic":        []byte("\x28\xb5"),
		"nothing":             nil,
	} {
		if got, err := unpack(b, nil); !errors.Is(err, packed.ErrDamaged) && !errors.Is(err, packed.ErrNotPacked) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	if _, err := unpack(forge(t, strings.Replace(ok, "1", "2", 1)), nil); !errors.Is(err, packed.ErrFormat) {
		t.Errorf("a newer format: %v", err)
	}
}

// A bomb declares little and gives much, or declares much and is over the limit. Neither is read to its end.
func TestBomb(t *testing.T) {
	stream := make([]byte, 0, 64<<20)
	var buf bytes.Buffer
	w, err := packed.NewWriter(&buf, &packed.Index{ID: "x", State: "finished", Files: 1, Bytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("run.tape", 64<<20, bytes.NewReader(stream[:cap(stream)])); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var le *packed.LimitError
	if _, err := unpack(buf.Bytes(), &packed.Limits{Bytes: 1 << 20}); !errors.As(err, &le) {
		t.Errorf("%d bytes packed: %v", buf.Len(), err)
	}
	small := compress(t, append(decompress(t, pack(t, nil, nil))[:1024], stream[:cap(stream)]...))
	if _, err := unpack(small, nil); !errors.Is(err, packed.ErrDamaged) {
		t.Errorf("64 MiB behind the end: %v", err)
	}
}

// Frames are counted in memory: of tiny ones no more are taken than of the Writer's.
func TestManyFrames(t *testing.T) {
	b, _ := packFrames(t, long(3000, 50), 2000)
	if _, err := unpack(b, nil); err != nil {
		t.Error(err)
	}
	short := short(t, 100)
	if r, err := packed.NewReader(bytes.NewReader(short), int64(len(short)), nil); err != nil {
		t.Error(err)
	} else if _, err := all(r); !errors.Is(err, packed.ErrDamaged) || !strings.Contains(err.Error(), "no frame may begin") {
		t.Error(err)
	}
	if _, err := unpack(short, nil); !errors.Is(err, packed.ErrDamaged) || strings.Contains(err.Error(), "no frame may begin") { // its end is not there
		t.Error(err)
	}
}

// short is the beginning of a file of frames of an entry of 2 kB each.
func short(t testing.TB, n int) []byte {
	t.Helper()
	b := compress(t, decompress(t, forge(t, index(fmt.Sprint(n), fmt.Sprint(n*2048))))[:1024])
	rnd := rand.NewChaCha8([32]byte{})
	for i := range n {
		stream := decompress(t, forge(t, "", &tar.Header{Name: fmt.Sprintf("f%04d", i), Size: 2048}))[512 : 1024+2048]
		_, _ = rnd.Read(stream[512:])
		b = append(b, compress(t, stream)...)
	}
	return b
}

// Frames that no Writer makes are refused, with the table that fits them, too.
func TestFramesOfNoWriter(t *testing.T) {
	line := func(seq int) string { return fmt.Sprintf(`{"type":"record","seq":%d,"text":"0123456789"}`, seq) + "\n" }
	file := func(seqs []int, empty, end bool) []byte {
		var tape string
		for _, seq := range seqs {
			tape += line(seq)
		}
		h := &tar.Header{Name: "run.tape", Size: int64(len(tape))}
		stream := decompress(t, forge(t, index("1", fmt.Sprint(len(tape))), h))
		b := compress(t, stream[:1024])
		if empty {
			b = append(b, compress(t, nil)...)
		}
		b = append(b, compress(t, append(stream[1024:1536:1536], line(seqs[0])...))...)
		for _, seq := range seqs[1 : len(seqs)-1] {
			b = append(b, compress(t, []byte(line(seq)))...)
		}
		last := append([]byte(line(seqs[len(seqs)-1])), make([]byte, -len(tape)&511)...)
		if end {
			b = append(append(b, compress(t, last)...), compress(t, make([]byte, 1024))...)
		} else {
			b = append(b, compress(t, append(last, make([]byte, 1024)...))...)
		}
		b, err := packed.WithTableOf(b)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, err := unpack(file([]int{1, 2, 3, 4}, false, false), nil); err != nil {
		t.Error(err)
	}
	for why, b := range map[string][]byte{
		"is empty":                 file([]int{1, 2, 3, 4}, true, false),
		"has nothing but the end":  file([]int{1, 2, 3, 4}, false, true),
		"behind that of record 12": file([]int{1, 12, 3, 4}, false, false),
		"behind that of record 3":  file([]int{1, 2, 3, 3}, false, false),
	} {
		if _, err := unpack(b, nil); !errors.Is(err, packed.ErrDamaged) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// A table is whole, and nothing is behind it.
func TestTableCut(t *testing.T) {
	b, digest := packFrames(t, long(3000, 50), 2000)
	if digest.IsZero() {
		t.Fatal("it has no table")
	}
	for n := 0; n < 200; n += 7 {
		if _, err := unpack(b[:len(b)-1-n], nil); !errors.Is(err, packed.ErrDamaged) {
			t.Fatalf("%d bytes fewer: %v", n+1, err)
		}
	}
	if _, err := unpack(append(b[:len(b):len(b)], 0), nil); !errors.Is(err, packed.ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

// A frame may ask its decoder for more memory than pack's do.
func TestLargeWindow(t *testing.T) {
	var buf bytes.Buffer
	z, err := zstd.NewWriter(&buf, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	stream := decompress(t, pack(t, sample, nil))
	for range 2000 { // long enough for the encoder to use the window
		if _, err := z.Write(stream); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(buf.Bytes(), nil); !errors.Is(err, packed.ErrNotPacked) {
		t.Error(err)
	}
}

func decompress(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzReader reads any stream: no panic, and what is taken is what a Writer makes of the same entries.
func FuzzReader(f *testing.F) {
	f.Add(decompress(f, pack(f, sample, nil)))
	f.Add(decompress(f, pack(f, nil, nil)))
	f.Add(decompress(f, forge(f, index("1", "3"), &tar.Header{Name: "run.tape", Size: 3})))
	f.Fuzz(func(t *testing.T, stream []byte) {
		file := compress(t, stream)
		got, err := unpack(file, &packed.Limits{Bytes: 1 << 20, Files: 100})
		if err != nil {
			return
		}
		r, err := packed.NewReader(bytes.NewReader(file), int64(len(file)), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		ix := r.Index()
		var buf bytes.Buffer
		w, err := packed.NewWriter(&buf, &ix)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range got {
			if err := w.Add(e.name, int64(len(e.content)), strings.NewReader(e.content)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if again := decompress(t, buf.Bytes()); !bytes.Equal(again, stream) {
			t.Errorf("%d bytes were taken for %d others", len(stream), len(again))
		}
	})
}

// FuzzFile reads any file: no panic, and errors of the documented kinds alone.
func FuzzFile(f *testing.F) {
	f.Add(pack(f, sample, nil))
	f.Add(pack(f, nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := unpack(b, &packed.Limits{Bytes: 1 << 20, Files: 100})
		var le *packed.LimitError
		if err != nil && !errors.Is(err, packed.ErrDamaged) && !errors.Is(err, packed.ErrNotPacked) &&
			!errors.Is(err, packed.ErrFormat) && !errors.As(err, &le) {
			t.Errorf("an error of another kind: %v", err)
		}
	})
}
