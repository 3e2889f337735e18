package page_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/internal/page"
)

// spent runs f again and again and says beside the time how much of it this process had a processor for, which other programs do not change.
func spent(b *testing.B, f func() error) {
	begun := cputime.Spent()
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cputime.Spent()-begun).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkFile writes a page of a run of sixty turns.
func BenchmarkFile(b *testing.B) {
	rec := made(b, "one", func(tt *Tape) { agent(tt, 60, 5000) })
	spent(b, func() error {
		w, err := shelf(b, rec).WriteFile(b.Context(), io.Discard, &page.FileOptions{Bundle: bundle})
		b.ReportMetric(float64(w.Bytes), "bytes")
		return err
	})
}

func BenchmarkLong(b *testing.B) {
	rec := made(b, "long", Long)
	size := func(path string) float64 {
		st, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		return float64(st.Size())
	}
	b.Run("Summary", func(b *testing.B) {
		spent(b, func() error { page.Prepare(rec); return nil })
		b.ReportMetric(size(strings.TrimSuffix(rec.Dir, ".rec")+".index"), "bytes")
		b.ReportMetric(size(rec.TapePath()), "tape-bytes")
	})
	src, err := page.Open(rec, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"run.json", "index.json", "records/200.json", "turn/50000.json", "files.json", "files/100.json"} {
		b.Run(path, func(b *testing.B) {
			spent(b, func() error { _, err := src.Document(b.Context(), path); return err })
		})
	}
	for name, query := range map[string]string{"Rare": "zzyzx, the quick brown", "Common": "line 12 of file 99999", "Everywhere": "says"} {
		b.Run("Search"+name, func(b *testing.B) {
			spent(b, func() error { _, err := src.Search(b.Context(), query); return err })
		})
	}
}

// BenchmarkList lists ten thousand recordings.
func BenchmarkList(b *testing.B) {
	rec := made(b, "one", func(tt *Tape) { agent(tt, 1, 10) })
	lib := filepath.Dir(rec.Dir)
	rec.Manifest.Totals = &recording.Totals{Models: []string{"m"}, Unpriced: []string{}}
	for n := range 10_000 {
		dir := filepath.Join(lib, fmt.Sprintf("%05d.rec", n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		rec.Manifest.ID = fmt.Sprint(n)
		if err := rec.Manifest.Write(dir, false); err != nil {
			b.Fatal(err)
		}
	}
	shown, err := page.ShowDir(lib, nil)
	if err != nil {
		b.Fatal(err)
	}
	spent(b, func() error {
		doc, err := shown.Document(b.Context(), "library.json")
		b.ReportMetric(float64(len(doc)), "bytes")
		return err
	})
}
