package cassette_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// long writes a cassette of n chunks, each with a frame behind it, three of them at each moment, and returns its directory.
func long(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "long")
	var raw, chunks, frames strings.Builder
	for i := range n {
		line := fmt.Sprintf("line %d\r\n", i)
		fmt.Fprintf(&chunks, `{"seq":%d,"t_ms":%d,"offset":%d,"length":%d}`+"\n", 2*i+1, i/3*10, raw.Len(), len(line))
		raw.WriteString(line)
		fmt.Fprintf(&frames, `{"seq":%d,"t_ms":%d,"size":{"Rows":1,"Cols":9},"text":["%s"],"cursor":{},"raw_start":0,"raw_end":%d,"parser_offset":0}`+"\n",
			2*i+2, i/3*10, strings.Repeat("x", i%300), raw.Len())
		if i%7 == 0 {
			frames.WriteString("\n")
		}
	}
	files := map[string]string{"output.raw": raw.String(), "output.jsonl": chunks.String(), "frames.jsonl": frames.String(), "input.jsonl": "", "service-events.jsonl": "",
		"final.json": fmt.Sprintf(`{"seq":%d,"t_ms":%d,"duration_ms":1}`, 2*n+1, n*10), "scrub-report.json": `{"status":"clean","rules":[],"hit_counts":{}}`,
		"manifest.json": manifest(raw.String())}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFrom looks up moments, every one where TAPEDECK_LONG is set, and compares with reading all.
func TestFrom(t *testing.T) {
	t.Parallel()
	dir := long(t, 100)
	step := int64(35)
	if os.Getenv("TAPEDECK_LONG") != "" {
		step = 5
	}
	for _, o := range []*cassette.OpenOptions{nil, {Lazy: true}, {Partial: true}} {
		r, err := cassette.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var all []cassette.Timed
		for e, err := range r.Events(nil) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e.Timed)
		}
		for ms := int64(-5); ms < 1100; ms += step {
			from := time.Duration(ms) * time.Millisecond
			sameFrom(t, r, all, from)
		}
		f, err := r.LastFrame()
		if err != nil || f == nil || f.Seq != 200 {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

func sameFrom(t *testing.T, r *cassette.Reader, all []cassette.Timed, from time.Duration) {
	t.Helper()
	var want, got []uint64
	var frame uint64
	for _, e := range all {
		if e.Time() >= from {
			want = append(want, e.Seq)
		}
		if e.Time() <= from && e.Seq%2 == 0 {
			frame = e.Seq
		}
	}
	for e, err := range r.Events(&cassette.EventsOptions{From: from}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("from %v: %v, expected %v", from, got, want)
	}
	f, err := r.FrameAt(from)
	if err != nil || f == nil && frame != 0 || f != nil && f.Seq != frame {
		t.Fatalf("at %v: %+v, %v, expected frame %d", from, f, err, frame)
	}
}

// BenchmarkLastFrame opens a cassette of half a million lines and reads its last frame.
func BenchmarkLastFrame(b *testing.B) {
	dir := long(b, 250_000)
	for b.Loop() {
		r, err := cassette.Open(dir, &cassette.OpenOptions{Lazy: true})
		if err != nil {
			b.Fatal(err)
		}
		for _, at := range []time.Duration{0, time.Minute} {
			if _, err := r.FrameAt(at); err != nil {
				b.Fatal(err)
			}
		}
		if f, err := r.LastFrame(); err != nil || f == nil {
			b.Fatal(err)
		}
		r.Close()
	}
}
