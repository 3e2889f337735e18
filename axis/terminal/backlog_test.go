package terminal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// pattern is n bytes that tell where in the stream they stand.
func pattern(from, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte((from+i)*7 + (from+i)>>8)
	}
	return p
}

// TestBacklog writes and reads as it comes, far more than is held in memory: the bytes come in order, whatever was in the file.
func TestBacklog(t *testing.T) {
	b := newBacklog(0)
	defer b.close()
	random := rand.New(rand.NewPCG(1, 2))
	var spare []byte
	wrote, read, spilled := 0, 0, false
	take := func() {
		p, err := b.next(spare[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if !bytes.Equal(p, pattern(read, len(p))) {
			t.Fatalf("%d bytes after %d are others", len(p), read)
		}
		read += len(p)
		spare = p
	}
	for range 40 {
		for range random.IntN(12) {
			n := 1 + random.IntN(600<<10)
			if !b.write(pattern(wrote, n)) {
				t.Fatal("dropped")
			}
			wrote += n
		}
		spilled = spilled || b.to > b.from
		for range random.IntN(8) {
			if read < wrote {
				take()
			}
		}
		if cap(b.mem) > 3*inMemory {
			t.Fatalf("%d bytes in memory", cap(b.mem))
		}
	}
	b.end()
	for read < wrote {
		take()
	}
	if p, err := b.next(nil); !errors.Is(err, io.EOF) || len(p) > 0 {
		t.Errorf("after the end: %d bytes, %v", len(p), err)
	}
	if !spilled || b.lost() != 0 {
		t.Errorf("spilled %v, %d dropped", spilled, b.lost())
	}
}

// TestBacklogFull drops what is over the limit, until all the rest was read.
func TestBacklogFull(t *testing.T) {
	b := newBacklog(100)
	defer b.close()
	if !b.write(make([]byte, 80)) || b.write(make([]byte, 30)) || b.write(make([]byte, 1)) || b.lost() != 31 {
		t.Errorf("%d dropped", b.lost())
	}
	if p, err := b.next(nil); len(p) != 80 || err != nil {
		t.Errorf("%d bytes, %v", len(p), err)
	}
	if !b.write(make([]byte, 100)) || b.lost() != 31 {
		t.Errorf("%d dropped", b.lost())
	}
}

// TestEnviron makes an environment of what a caller has.
func TestEnviron(t *testing.T) {
	have := []string{"PATH=/bin", "A=1", "AB=2", "TERM=dumb", "EMPTY="}
	for _, test := range []struct{ allow, want []string }{
		{nil, []string{"TERM=x"}},
		{[]string{"A", "EMPTY", "MISSING"}, []string{"A=1", "EMPTY=", "TERM=x"}},
		{[]string{"*"}, []string{"PATH=/bin", "A=1", "AB=2", "EMPTY=", "TERM=x"}},
		{[]string{"*", "A=3"}, []string{"PATH=/bin", "AB=2", "EMPTY=", "A=3", "TERM=x"}},
		{[]string{"A=3", "*"}, []string{"PATH=/bin", "A=1", "AB=2", "EMPTY=", "TERM=x"}},
	} {
		got := environ(test.allow, "x", have)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.allow, got, test.want)
		}
	}
}
