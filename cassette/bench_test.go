package cassette_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// logLines returns n bytes of a log as a terminal gives them.
func logLines(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "2026-11-22T09:%02d:%02d.%03dZ info  worker %d: request %08x done in %d ms, %d bytes sent\r\n", i/60%60, i%60, i%1000, i%16, i*2654435761, i%977, i*31%100000)
	}
	return b.Bytes()[:n]
}

// BenchmarkOutput records log lines in reads of 32 KiB, until the files are whole.
func BenchmarkOutput(b *testing.B) { benchOutput(b, 32<<10) }

// BenchmarkOutputSmall records them in the reads of 4 KiB that a pseudo-terminal gives.
func BenchmarkOutputSmall(b *testing.B) { benchOutput(b, 4095) }

func benchOutput(b *testing.B, size int) {
	p := logLines(4 << 20)
	r, err := cassette.Create(filepath.Join(b.TempDir(), "c"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size))
	b.ResetTimer()
	at := 0
	for b.Loop() {
		if at+size > len(p) {
			at = 0
		}
		if err := r.Output(p[at : at+size]); err != nil {
			b.Fatal(err)
		}
		at += size
	}
	if _, err := r.Finish(&cassette.Final{}); err != nil {
		b.Fatal(err)
	}
}
