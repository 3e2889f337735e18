package recordlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
)

// BenchmarkAdd adds one entry at a time, without and with fsync.
func BenchmarkAdd(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			k, dir := newKey(b, "tester"), filepath.Join(b.TempDir(), "log")
			for i := 0; b.Loop(); i++ {
				if _, err := recordlog.Add(b.Context(), dir, k.Signer, k.Verifier, &recordlog.AddOptions{Sync: sync}, entry(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBare is what the three files that an Add replaces cost by themselves: an average bundle, a tile, a checkpoint.
func BenchmarkBare(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			dir := b.TempDir()
			for b.Loop() {
				for i, size := range []int{128 * 300, 128 * 32, 200} {
					if err := durable.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, size), &durable.Options{Sync: sync, Mode: 0o644}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkProve proves one entry of a million, found by its id.
func BenchmarkProve(b *testing.B) {
	const size = 1_000_000
	k, dir := newKey(b, "tester"), filepath.Join(b.TempDir(), "log")
	for i := 0; i < size; i += 50_000 {
		add(b, dir, k, entries(i, i+50_000)...)
	}
	for i := 0; b.Loop(); i++ {
		log, err := recordlog.Open(dir, k.Verifier)
		if err != nil {
			b.Fatal(err)
		}
		n, _, err := log.Find(entry(i * 7919 % size).ID)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := log.Prove(n); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	os.RemoveAll(dir)
}
