package sessionlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzWriter opens whatever bytes for appending: it is refused and stays as it is, or a line is appended, what loads loads on,
// and not a byte is lost.
func FuzzWriter(f *testing.F) {
	for _, text := range logs {
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "session.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := OpenWriter(path, nil)
		if err != nil {
			if got := string(readFile(t, path)); got != text {
				t.Fatalf("refused, and %q became %q", text, got)
			}
			return
		}
		defer w.Close()
		before, err := Load(strings.NewReader(text), "before", &ReaderOptions{Tolerant: true})
		if err != nil {
			t.Fatalf("%q is opened, and does not load: %v", text, err)
		}
		seq, err := w.Append(&PageIn{}, nil)
		if err != nil {
			if before.Order.full {
				return
			}
			t.Fatal(err)
		}
		kept, side := text, ""
		for _, r := range w.Repairs() {
			kept, side = text[:r.Offset], string(readFile(t, r.Side))
		}
		line, err := AppendEnvelope(nil, seq, &PageIn{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := string(readFile(t, path))
		between, ok := strings.CutSuffix(strings.TrimPrefix(got, kept), string(line)+"\n")
		if !ok || !strings.HasPrefix(got, kept) || between != "" && between != "\n" || kept+side != text {
			t.Fatalf("%q became %q and %q", text, got, side)
		}
		after, err := LoadFile(path, nil)
		if err != nil || len(after.Entries) != len(before.Entries)+1 || after.Order.Next() != seq+1 {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
	})
}
