package deck_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
)

// library32MB is a recording of 32 MB in 1,000 blobs of text like that of answers, which compresses about as those do.
func library32MB(b *testing.B) *crafted {
	b.Helper()
	c := craft(b, filepath.Join(b.TempDir(), "a.rec"), "id", "finished", 0)
	rnd := rand.New(rand.NewPCG(1, 2))
	var names []byte
	for range 1000 {
		var text bytes.Buffer
		for i := 0; text.Len() < 32_000; i++ {
			fmt.Fprintf(&text, "data: {\"type\":\"delta\",\"index\":%d,\"text\":\"%x\"}\n\n", i, rnd.Uint32N(1<<20))
		}
		d, err := c.store.Put(text.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		names = append(names, d.String()+"\n"...)
	}
	c.write(b, "session.jsonl", string(names)) // what is mentioned is packed
	return c
}

// bytesOf is how many bytes the files of a recording have.
func bytesOf(b *testing.B, dir string) (n int64, all []byte) {
	for _, content := range contents(b, dir) {
		n += int64(len(content))
		all = append(all, content...)
	}
	return n, all
}

// BenchmarkPack against BenchmarkZstd is what tar, checking the blobs and a file each cost over compressing alone; the
// command "tar --zstd" does what BenchmarkZstd does, and reads the files.
func BenchmarkPack(b *testing.B) {
	c := library32MB(b)
	n, _ := bytesOf(b, c.dir)
	b.SetBytes(n)
	file := filepath.Join(b.TempDir(), "packed")
	var size int64
	for b.Loop() {
		p, err := library.Pack(context.Background(), c.open(b), file, nil)
		if err != nil {
			b.Fatal(err)
		}
		size = p.Size
		os.Remove(file)
	}
	b.ReportMetric(float64(n)/float64(size), "ratio")
}

func BenchmarkZstd(b *testing.B) {
	c := library32MB(b)
	n, all := bytesOf(b, c.dir)
	b.SetBytes(n)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(z, bytes.NewReader(all)); err != nil {
			b.Fatal(err)
		}
		if err := z.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/float64(out.Len()), "ratio")
}

func BenchmarkUnpack(b *testing.B) {
	c := library32MB(b)
	n, _ := bytesOf(b, c.dir)
	b.SetBytes(n)
	root := b.TempDir()
	file := filepath.Join(root, "packed")
	if _, err := library.Pack(context.Background(), c.open(b), file, nil); err != nil {
		b.Fatal(err)
	}
	lib := library.Of(root)
	for i := 0; b.Loop(); i++ {
		rec, err := lib.Unpack(context.Background(), file, &library.UnpackOptions{Output: filepath.Join(root, fmt.Sprint(i))})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		os.RemoveAll(rec.Dir)
		b.StartTimer()
	}
}

// BenchmarkMentions is the reading of GC: every file of a recording but the blobs, for what looks like a digest.
func BenchmarkMentions(b *testing.B) {
	lib := library.Of(b.TempDir())
	c := craft(b, filepath.Join(lib.Dir, "a.rec"), "id", "finished", 0)
	var text bytes.Buffer
	for i := 0; text.Len() < 32<<20; i++ {
		fmt.Fprintf(&text, "{\"seq\":%d,\"content_hash\":%q,\"text\":\"what an answer says, in words\"}\n", i, cas.Sum([]byte{byte(i)}))
	}
	c.write(b, "session.jsonl", text.String())
	stray(b, c, "nobody's, so that all of it must be read")
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		collect(b, lib, &library.GCOptions{DryRun: true})
	}
}
