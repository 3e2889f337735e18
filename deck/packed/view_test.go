package packed_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
)

// long is a recording of many frames: a tape, blobs that do not compress, and something long behind them.
func long(records, blobs int) []entry {
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "%x ", rnd.Uint64())
		}
		return b.String()
	}
	var tape strings.Builder
	tape.WriteString(`{"type":"header","version":1}` + "\n")
	for i := range records {
		fmt.Fprintf(&tape, `{"type":"record","seq":%d,"text":"%s"}`+"\n", i+1, text(200))
	}
	out := []entry{{"recording.json", "{}\n"}, {"run.tape", tape.String()}, {"run.tape.annotations.jsonl", "note"}}
	for range blobs {
		out = append(out, blob(text(3000)))
	}
	out = append(out, entry{"terminal/terminal.jsonl", text(900_000)}, entry{"tree.json", "tree"})
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return out
}

func packFrames(t testing.TB, entries []entry, frame int64) ([]byte, cas.Digest) {
	t.Helper()
	var buf bytes.Buffer
	w, err := packed.NewWriterOf(&buf, indexOf(entries), frame)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Add(e.name, int64(len(e.content)), strings.NewReader(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), w.Table()
}

// fetched gives ranges of b and adds up how many bytes they have.
func fetched(b []byte, read *int64) packed.Fetch {
	return func(from, n int64) ([]byte, error) {
		*read += n
		return slices.Clone(b[from:min(int64(len(b)), from+n)]), nil
	}
}

func TestView(t *testing.T) {
	for frames, entries := range map[string][]entry{"some": long(3000, 50), "pages": long(3000, 2500)} {
		b, digest := packFrames(t, entries, 2000)
		if got, err := unpack(b, nil); err != nil || fmt.Sprint(got) != fmt.Sprint(entries) {
			t.Fatalf("%s: it does not unpack: %v", frames, err)
		}
		if got := decompress(t, b); !bytes.Equal(got, decompress(t, pack(t, entries, nil))) {
			t.Errorf("%s: zstd reads another stream", frames)
		}
		var read int64
		v, err := packed.NewView(fetched(b, &read), int64(len(b)), digest)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			f, err := v.Open(e.name)
			if err != nil {
				t.Fatalf("%s: %s: %v", frames, e.name, err)
			}
			if got, err := io.ReadAll(f); string(got) != e.content || err != nil {
				t.Errorf("%s: %s: %d bytes, %v", frames, e.name, len(got), err)
			}
			f.Close()
		}
		for _, none := range []string{"a", "run.tapf", "zz", "run.tape.cas/" + cas.Sum([]byte("no")).String()} {
			if _, err := v.Open(none); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s: %v", frames, none, err)
			}
		}
		var names []string
		if err := v.Each("run.tape.cas/", func(e *packed.Entry) error { names = append(names, e.Name); return nil }); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(names) != "[recording.json run.tape run.tape.annotations.jsonl terminal/terminal.jsonl tree.json]" {
			t.Errorf("%s: %s", frames, names)
		}
	}
}

// Each gives no entry twice where no frame begins among those that it skips.
func TestEachPastBlobsOfTheFirstFrame(t *testing.T) {
	entries := long(10, 20)
	b, digest := packFrames(t, entries, 60_000)
	var read int64
	v, err := packed.NewView(fetched(b, &read), int64(len(b)), digest)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := v.Each("run.tape.cas/", func(e *packed.Entry) error { names = append(names, e.Name); return nil }); err != nil {
		t.Error(err)
	}
	if fmt.Sprint(names) != "[recording.json run.tape run.tape.annotations.jsonl terminal/terminal.jsonl tree.json]" {
		t.Error(names)
	}
}

// A record of a long tape is found with a little of the file.
func TestViewOfARecord(t *testing.T) {
	entries := long(20_000, 10)
	b, digest := packFrames(t, entries, 2000)
	for _, seq := range []uint64{0, 1, 2, 777, 19_999, 20_000, 20_001} {
		var read int64
		v, err := packed.NewView(fetched(b, &read), int64(len(b)), digest)
		if err != nil {
			t.Fatal(err)
		}
		e, err := v.OpenTape(seq)
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 1<<18)
		n, err := io.ReadFull(e, head)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		e.Close()
		found := strings.Contains(string(head[:n]), fmt.Sprintf(`"seq":%d,`, seq))
		if want := seq > 0 && seq <= 20_000; found != want || !bytes.HasPrefix(head, []byte(`{"type":`)) {
			t.Errorf("%d: found %v in %.40q", seq, found, head)
		}
		if read > int64(len(b))/4 {
			t.Errorf("%d: %d of %d bytes were read", seq, read, len(b))
		}
	}
}

// A bit that is another one is told, in the table and in every frame, by who looks and by who unpacks.
func TestViewOfDamage(t *testing.T) {
	entries := long(300, 20)[:20]
	b, digest := packFrames(t, entries, 2000)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		other := slices.Clone(b)
		other[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		if _, err := unpack(other, nil); err == nil {
			t.Error("it was unpacked")
		}
		var read int64
		v, err := packed.NewView(fetched(other, &read), int64(len(other)), digest)
		for i := 0; i < len(entries) && err == nil; i++ {
			var e *packed.Entry
			if e, err = v.Open(entries[i].name); err == nil {
				var got []byte
				if got, err = io.ReadAll(e); err == nil && string(got) != entries[i].content {
					t.Fatalf("%s: other bytes", entries[i].name)
				}
				e.Close()
			}
		}
		if err != nil && !errors.Is(err, packed.ErrDamaged) {
			t.Errorf("%v", err)
		}
	}
}

// Who holds the table can have digests that fit and frames that do not follow each other, headers of indexes only, and a size that cannot be.
func TestViewOfAHostileStore(t *testing.T) {
	one := decompress(t, forge(t, "", &tar.Header{Name: "f0000"}))
	frames := [][]byte{compress(t, one[:512])}
	name := func(i int) string { return fmt.Sprintf("f%04d", i)[:min(5*i, 5)] }
	for i := range 300 {
		frames = append(frames, compress(t, decompress(t, forge(t, "", &tar.Header{Name: name(i + 1)}))[512:1024]))
	}
	paged := func(at func(i int, at int64) int64) ([]byte, cas.Digest) {
		b, digest, err := packed.WithTable(frames, 512, name, at)
		if err != nil {
			t.Fatal(err)
		}
		return b, digest
	}
	good, goodDigest := paged(func(_ int, at int64) int64 { return at })
	back, backDigest := paged(func(i int, at int64) int64 { return at - 10_000*int64(i/256) })
	apart, apartDigest := paged(func(i int, at int64) int64 { return at + 100*int64(i/256) })
	stream := bytes.Repeat(decompress(t, forge(t, ""))[:512], 100_000)
	frame := compress(t, stream)
	text := fmt.Appendf(nil, `{"pages":false,"nodes":[{"at":0,"size":%d,"raw":%d,"digest":%q,"of":0}]}`, len(frame), len(stream), cas.Sum(frame))
	for what, c := range map[string]struct {
		b      []byte
		digest cas.Digest
		size   int64
	}{
		"good":        {good, goodDigest, int64(len(good))},
		"pages apart": {apart, apartDigest, int64(len(apart))},
		"a page back": {back, backDigest, int64(len(back))},
		"indexes":     {packed.WithRoot(frame, text), packed.RootOf(text), int64(len(packed.WithRoot(frame, text)))},
		"a size":      {good, goodDigest, -5},
	} {
		var read int64
		v, err := packed.NewView(fetched(c.b, &read), c.size, c.digest)
		if err == nil {
			err = v.Each("", func(e *packed.Entry) error { _, err := io.Copy(io.Discard, e); return err })
		}
		if !errors.Is(err, packed.ErrDamaged) || strings.Contains(err.Error(), "cut short") != (what == "good") { // its end is not there
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A View of a long table holds a few pages and frames of it.
func TestViewHoldsLittle(t *testing.T) {
	frame := compress(t, make([]byte, 512))
	frames := slices.Repeat([][]byte{frame}, 70*256)
	name := func(i int) string { return fmt.Sprintf("f%08d", i)[:min(9*i, 9)] }
	b, digest, err := packed.WithTable(frames, 512, name, func(_ int, at int64) int64 { return at })
	if err != nil {
		t.Fatal(err)
	}
	var read int64
	v, err := packed.NewView(fetched(b, &read), int64(len(b)), digest)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(frames); i += 256 {
		if _, err := v.Open(name(i)); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if held, pages := v.Held(); held > 16*512 || pages > 64 {
		t.Errorf("%d bytes of frames, %d pages", held, pages)
	}
	bad := fmt.Appendf(nil, `{"nodes":[%s{}]}`, strings.Repeat("{},", 1000))
	file := packed.WithRoot(frame, bad)
	if _, err := packed.NewView(fetched(file, &read), int64(len(file)), packed.RootOf(bad)); !errors.Is(err, packed.ErrDamaged) {
		t.Error(err)
	}
}

// FuzzView reads any file whose table somebody vouches for: no panic, and errors of the documented kinds alone.
func FuzzView(f *testing.F) {
	b, _ := packFrames(f, long(2000, 5), 2000)
	at := bytes.LastIndex(b, []byte(`{"pages":`))
	f.Add(b[:4000], b[at:len(b)-12])
	f.Fuzz(func(t *testing.T, frames, text []byte) {
		file := packed.WithRoot(frames, text)
		var read int64
		v, err := packed.NewView(fetched(file, &read), int64(len(file)), packed.RootOf(text))
		if err == nil {
			err = v.Each("run.tape.cas/", func(e *packed.Entry) error { _, err := io.Copy(io.Discard, io.LimitReader(e, 1<<20)); return err })
			if e, errTape := v.OpenTape(3); errTape == nil {
				e.Close()
			}
		}
		if err != nil && !errors.Is(err, packed.ErrDamaged) && !errors.Is(err, packed.ErrNoRanges) {
			t.Errorf("an error of another kind: %v", err)
		}
	})
}
