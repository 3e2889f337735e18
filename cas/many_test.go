package cas_test

import (
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// TestManyBlobs puts, reads and lists 1,000,000 blobs in one directory, in the long form: TAPEDECK_LONG=1 go test ./cas -run
// ManyBlobs -v -timeout 30m. That takes 4 GB of the temporary directory, for a file system gives each blob a block, and
// minutes, most of them to remove the directory. It is flat, as the format has it: the last blobs must not cost much more
// than the first.
func TestManyBlobs(t *testing.T) {
	n, long := 2_000, os.Getenv("TAPEDECK_LONG") == "1"
	if long {
		n = 1_000_000
	}
	s := openDir(t, nil)
	const parts = 10
	var first, last time.Duration
	for part := range parts {
		took := putMany(t, s, part*n/parts, (part+1)*n/parts)
		if part == 0 {
			first = took
		}
		last = took
	}
	begun := time.Now()
	listed := 0
	for _, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	listing := time.Since(begun)
	begun = time.Now()
	reads := getMany(t, s, n)
	t.Logf("%d blobs: put %v each at first and %v at last, listed in %v, read %v each", n, first/time.Duration(n/parts),
		last/time.Duration(n/parts), listing, time.Since(begun)/time.Duration(reads))
	if listed != n {
		t.Errorf("%d blobs are listed, of %d", listed, n)
	}
	if ratio := float64(last) / float64(first); long && ratio > 5 {
		t.Errorf("the last blobs took %.1f times as long as the first", ratio)
	}
}

func manyBlob(i int) []byte { return binary.BigEndian.AppendUint64([]byte("a blob "), uint64(i)) }

func putMany(t *testing.T, s *cas.Dir, from, to int) time.Duration {
	t.Helper()
	begun := time.Now()
	for i := from; i < to; i++ {
		if _, err := s.Put(manyBlob(i)); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begun)
}

// getMany reads a thousand of n blobs, from all over them, and returns how many it read.
func getMany(t *testing.T, s *cas.Dir, n int) int {
	t.Helper()
	const reads = 1000
	for i := range reads {
		want := manyBlob(i * (n / reads))
		if b, err := s.Get(cas.Sum(want)); err != nil || string(b) != string(want) {
			t.Fatalf("%q, %v", b, err)
		}
	}
	return reads
}
