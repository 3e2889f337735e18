//go:build unix

package testbench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

// BenchmarkLiveCommand is one command of many on a thousand files of 4 KiB: in a directory that is kept from one to the next, and in one
// that is made for it.
func BenchmarkLiveCommand(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		path := filepath.Join(dir, fmt.Sprint("d", i%20), fmt.Sprint("f", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 4096), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			b.Fatal(err)
		}
	}
	fresh := &freshly{}
	for name, p := range map[string]testbench.Processes{"kept": {Live: true}, "fresh": {Runner: fresh}} {
		b.Run(name, func(b *testing.B) {
			bench, err := testbench.Open(&testbench.Config{Files: testbench.Files{Dir: dir}, Processes: p})
			if err != nil {
				b.Fatal(err)
			}
			fresh.b = bench
			for b.Loop() {
				if err := bench.Processes().Command(b.Context(), "true").Run(); err != nil {
					b.Fatal(err)
				}
			}
			if err := bench.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
