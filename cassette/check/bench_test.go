package check_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

// flood makes a cassette of so many chunks of a plain log, 4 KiB each.
func flood(b *testing.B, chunks int) string {
	var now time.Duration
	dir := filepath.Join(b.TempDir(), "flood")
	r, err := cassette.Create(dir, &cassette.CreateOptions{ID: "flood", FrameEvery: -1, Clock: func() time.Duration { return now }})
	if err != nil {
		b.Fatal(err)
	}
	line := 0
	for i := range chunks {
		now = time.Duration(i) * time.Millisecond
		var s strings.Builder
		for s.Len() < 4096 {
			fmt.Fprintf(&s, "%08d INFO  worker %d handled the request in a while\r\n", line, line%7)
			line++
		}
		if err := r.Output([]byte(s.String())); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := r.Finish(&cassette.Final{Exit: exited}); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkCheck has the same cassette with one assertion and with a hundred.
func BenchmarkCheck(b *testing.B) {
	dir := flood(b, 4000)
	st, err := os.Stat(filepath.Join(dir, "output.raw"))
	if err != nil {
		b.Fatal(err)
	}
	r, err := cassette.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	text := fmt.Sprintf("version: 1\ncassette: {id: flood, sha256: %q}\nassertions:\n", r.Manifest().ContentDigest.SHA256)
	for _, n := range []int{1, 100} {
		for _, kind := range []string{`frame: {contains: "panic %d", never: true}`, `frame: {contains: "panic %d", eventually: true}`,
			`frame: {contains: "panic %d", never: true, normalise: true}`, `state: {title: "x%d", eventually: true}`} {
			all := text
			for i := range n {
				all += "  - " + fmt.Sprintf(kind, i) + "\n"
			}
			s, err := check.Parse("s.yaml", []byte(all))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%d of %s", n, kind), func(b *testing.B) {
				b.SetBytes(st.Size())
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.On(context.Background(), r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
