package seal_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// tapeOf writes a recording whose tape has n records of about size bytes.
func tapeOf(b testing.TB, n, size int) string {
	b.Helper()
	dir := b.TempDir()
	put(b, dir, map[string]string{"recording.json": `{"id":"bench"}`})
	f, err := os.Create(filepath.Join(dir, "run.tape"))
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fill := strings.Repeat("what a model said, in pieces of text; ", size/38+1)
	fmt.Fprintln(w, `{"type":"header","version":1,"harn_version":"bench 1"}`)
	line := make([]byte, 0, 2*size)
	for i := range n {
		line = append(line[:0], `{"type":"record","seq":`...)
		line = strconv.AppendInt(line, int64(i), 10)
		line = append(line, `,"phase":"user_script","virtual_time_ms":1795310760389,"monotonic_ms":332,"kind":{"kind":"x","text":"`...)
		if room := size - len(line) - 5; room > 0 {
			line = append(line, fill[:room]...)
		}
		line = append(line, "\"}}\n"...)
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

// hashOnce reads a file and takes its BLAKE3 and its SHA-256, one after the other for each piece that was read.
func hashOnce(b testing.TB, path string) {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	one, two := cas.NewHasher(), sha256.New()
	buf := make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		one.Write(buf[:n])
		two.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	one.Sum()
	two.Sum(nil)
}

// BenchmarkSeal seals 1,000,000 records and holds the time against that of hashing their bytes once with BLAKE3 and SHA-256, in
// the same process, by turns ("ratio": the promise is 1.5 at most for records of 600 bytes and more).
func BenchmarkSeal(b *testing.B) {
	for _, size := range []int{130, 600, 1500} {
		b.Run(fmt.Sprintf("1000000x%d", size), func(b *testing.B) {
			dir := tapeOf(b, 1_000_000, size)
			k := newKey(b)
			info, err := os.Stat(filepath.Join(dir, "run.tape"))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			var hashing, sealing, verifying, hashingCPU, sealingCPU time.Duration
			var peak uint64
			for b.Loop() {
				start, cpu := time.Now(), cputime.Spent()
				hashOnce(b, filepath.Join(dir, "run.tape"))
				hashing += time.Since(start)
				hashingCPU += cputime.Spent() - cpu
				stop := watchMemory()
				start, cpu = time.Now(), cputime.Spent()
				if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k, Replace: true}); err != nil {
					b.Fatal(err)
				}
				sealing += time.Since(start)
				sealingCPU += cputime.Spent() - cpu
				start = time.Now()
				if r := verify(b, dir, nil); !r.OK() {
					b.Fatal(r.Problems)
				}
				verifying += time.Since(start)
				peak = max(peak, stop())
			}
			b.ReportMetric(float64(sealing)/float64(hashing), "ratio")
			b.ReportMetric(float64(sealingCPU)/max(1, float64(hashingCPU)), "cpu-ratio")
			b.ReportMetric(float64(verifying)/float64(hashing), "verify-ratio")
			b.ReportMetric(sealing.Seconds()/float64(b.N), "seal-s")
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
		})
	}
}

// watchMemory looks at the heap until the function that it returns is called, which returns the most that was in use, in bytes.
func watchMemory() func() uint64 {
	runtime.GC()
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		peak := uint64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
			case <-done:
				most <- peak
				return
			}
		}
	}()
	return func() uint64 {
		close(done)
		return <-most
	}
}

// BenchmarkProve proves one record of 10,000,000 (100,000 with -short) by the stored tiles.
func BenchmarkProve(b *testing.B) {
	n := 10_000_000
	if testing.Short() {
		n = 100_000
	}
	dir := tapeOf(b, n, 150)
	k := sealed(b, dir)
	keys := &seal.ProofOptions{Keys: []seal.PublicKey{k.Public()}}
	b.Run("record", func(b *testing.B) {
		i, slowest := 0, time.Duration(0)
		for b.Loop() {
			i = (i + 7_368_787) % n
			start := time.Now()
			p, err := seal.Prove(context.Background(), dir, &seal.ProveOptions{Seq: uint64(i)})
			if err != nil {
				b.Fatal(err)
			}
			slowest = max(slowest, time.Since(start))
			if i%64 == 0 {
				if _, err := seal.VerifyProof(p.Encode(), keys); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
	})
	b.Run("verify-proof", func(b *testing.B) {
		text := prove(b, dir, &seal.ProveOptions{Seq: uint64(n / 3)})
		for b.Loop() {
			if _, err := seal.VerifyProof(text, keys); err != nil {
				b.Fatal(err)
			}
		}
	})
}
