package deck

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestSurveyHoldsPathsAlone surveys a tape of many changed files, whose contents must not stay in memory.
func TestSurveyHoldsPathsAlone(t *testing.T) {
	const files = 5000
	path := filepath.Join(t.TempDir(), "run.tape")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: recording.Producer, Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, nil)
	for i := range files {
		text := strings.Repeat("x", tape.InlineLimit-10) + fmt.Sprint(i)
		p := &tape.Payload{Hash: cas.Sum([]byte(text)), Len: int64(len(text)), Text: text, Inline: true}
		write := &tape.FileWrite{File: tape.File{Path: fmt.Sprintf("d/f%d", i), Content: p, ContentHash: p.Hash, LenBytes: p.Len, Mode: "100644"}}
		if err := rec.Record(write); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	before := heap()
	seen, err := survey(path, nil, nil)
	if err != nil || len(seen.changed) != files {
		t.Fatalf("%d files, %v, want %d", len(seen.changed), err, files)
	}
	if held := heap() - before; held > 4<<20 {
		t.Errorf("%d MiB are held of a tape of %d MiB", held>>20, files*tape.InlineLimit>>20)
	}
	runtime.KeepAlive(seen)
}

// heap is how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
