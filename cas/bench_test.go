package cas_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// blobs4K returns a function that gives a new blob of 4 KiB with every call. Its bytes are valid until the next.
func blobs4K() func() []byte {
	blob := bytes.Repeat([]byte("0123456789abcdef"), 256)
	var n uint64
	return func() []byte {
		n++
		binary.LittleEndian.PutUint64(blob, n)
		return blob
	}
}

// BenchmarkMemoryPut puts new blobs of 4 KiB into a store in memory, and hashes as many. of-raw is the pace of the one over
// that of the other, in time of the processor. of-copy is its pace over that of hashing and copying each into fresh memory:
// no store that keeps blobs is faster. A store is dropped after 64 MiB.
func BenchmarkMemoryPut(b *testing.B) {
	const round = 16 << 10
	next := blobs4K()
	var raw, copied, ours time.Duration
	for b.Loop() {
		begun := cputime.Spent()
		for range round {
			blake3.Sum256(next())
		}
		raw += cputime.Spent() - begun
		begun = cputime.Spent()
		room := make([]byte, round*4096)
		for i := range round {
			blob := next()
			blake3.Sum256(blob)
			copy(room[i*len(blob):], blob)
		}
		copied += cputime.Spent() - begun
		begun = cputime.Spent()
		s := cas.NewMemory()
		for range round {
			if _, err := s.Put(next()); err != nil {
				b.Fatal(err)
			}
		}
		ours += cputime.Spent() - begun
	}
	b.ReportMetric(float64(raw)/float64(ours), "of-raw")
	b.ReportMetric(float64(copied)/float64(ours), "of-copy")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N*round), "ns/blob")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDirPut puts new blobs of 4 KiB into a directory, and writes as many to temporary files of their own that are
// renamed. x-raw is the time of the one over the time of the other.
func BenchmarkDirPut(b *testing.B) {
	for name, o := range map[string]*cas.DirOptions{"plain": nil, "synced": {Sync: true}} {
		b.Run(name, func(b *testing.B) {
			next, s, dir := blobs4K(), openDir(b, o), b.TempDir()
			var raw, ours time.Duration
			for b.Loop() {
				blob := next()
				begun := time.Now()
				if err := writeAndRename(dir, blob, o != nil); err != nil {
					b.Fatal(err)
				}
				raw += time.Since(begun)
				begun = time.Now()
				if _, err := s.Put(blob); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(begun)
			}
			b.ReportMetric(float64(ours)/float64(raw), "x-raw")
			b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/blob")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// writeAndRename is what a directory's Put cannot do without.
func writeAndRename(dir string, blob []byte, sync bool) error {
	temp := filepath.Join(dir, "temp")
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(blob)
	if err == nil && sync {
		err = f.Sync()
	}
	final := filepath.Join(dir, cas.Digest(blob[:cas.Size]).String())
	if err := errors.Join(err, f.Close(), os.Rename(temp, final)); err != nil || !sync {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
