package foreign

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Duration { return time.Duration(c.ms.Load()) * time.Millisecond }

// drainChecked reads s to its end and holds every event against what Event promises.
func drainChecked(t *testing.T, s Source, most int) {
	t.Helper()
	var last time.Duration
	total := 0
	for n := 0; ; n++ {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			s.Notes()
			return
		}
		var fe *Error
		if err != nil && !errors.As(err, &fe) {
			t.Fatalf("an error without its place: %v", err)
		}
		if err != nil {
			return
		}
		total += len(e.Data)
		switch {
		case e.At < last || e.At > MaxTime:
			t.Fatalf("time %v after %v", e.At, last)
		case n > most+2 || total > 3*most+64:
			t.Fatalf("%d events of %d bytes from a file of %d", n, total, most)
		case e.Kind == Resize && checkSize(e.Rows, e.Cols) != nil:
			t.Fatalf("size %dx%d", e.Cols, e.Rows)
		}
		last = e.At
	}
}

func FuzzOpen(f *testing.F) {
	for _, path := range []string{"asciinema-2.2.cast", "script-io.timing", "script-classic.log"} {
		b, err := os.ReadFile(filepath.Join("testdata", path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(v3 + `[1,"x","3"]`))
	f.Add([]byte(`{"version":1,"width":80,"height":24,"stdout":[[0.25,"a"],[1,"b"]]}`))
	f.Add([]byte(rec(5, 0, "a") + rec(6, 0, "b")))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if len(b) > 2 && b[0] == 0x1f || len(b) > 2 && b[0] == 'B' {
			return // the size of what is packed says nothing of what comes out
		}
		s, err := Open(path, nil)
		if err != nil {
			return
		}
		defer s.Close()
		drainChecked(t, s, len(b))
	})
}

func FuzzTypescript(f *testing.F) {
	f.Add([]byte("0.5 3\n0.25 4\n"), []byte("Script started on 2026\nhello\n\nScript done on 2026 [COMMAND_EXIT_CODE=\"3\"]\n"))
	f.Add([]byte("O 0.5 3\nI 0.1 2\nS 0.1 SIGWINCH ROWS=3 COLS=4\nH 0.0 EXIT_CODE 3\n"), []byte("hello\n"))
	f.Fuzz(func(t *testing.T, timing, log []byte) {
		dir := t.TempDir()
		files := &typescriptFiles{filepath.Join(dir, "t"), filepath.Join(dir, "l"), filepath.Join(dir, "l")}
		for path, b := range map[string][]byte{files.timing: timing, files.out: log} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := newTypescript(files)
		if err != nil {
			return
		}
		defer s.Close()
		drainChecked(t, s, len(timing)+len(log))
	})
}

// Whatever is cut into whatever chunks, an asciicast of it is read again as the same text.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("aä€🎉\xff\x1b[1m"), 2)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, parts := written(t, b), written(t, b[:min(max(cut, 0), len(b))], b[min(max(cut, 0), len(b)):])
		if whole != parts {
			t.Fatalf("cut at %d: %q, whole %q", cut, parts, whole)
		}
	})
}

func written(t *testing.T, chunks ...[]byte) (text string) {
	path := filepath.Join(t.TempDir(), "f")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := NewWriter(out, 2, &Header{Rows: 2, Cols: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		if err := w.Write(&Event{Kind: Output, Data: c}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return text
		}
		if err != nil {
			t.Fatal(err)
		}
		text += string(e.Data)
	}
}
