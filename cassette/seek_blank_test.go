package cassette

import (
	"bytes"
	"io"
	"runtime"
	"testing"
)

// A blanks is a file of nothing but blanks, but for its first line.
type blanks struct{ first string }

func (b blanks) ReadAt(p []byte, at int64) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	if at < int64(len(b.first)) {
		copy(p, b.first[at:])
	}
	return len(p), nil
}

// TestLastLineBehindBlanks finds the last line behind any number of blanks, and holds none of them.
func TestLastLineBehindBlanks(t *testing.T) {
	const size = 16 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, first := range []string{"{\"seq\":1}\n{\"seq\":2}\n", ""} {
		line, err := lastLine(blanks{first}, StreamFrames, size)
		if want := bytes.TrimSpace([]byte(first[len(first)/2:])); err != nil || !bytes.Equal(line, want) {
			t.Errorf("%q: %q, %v", first, line, err)
		}
	}
	runtime.ReadMemStats(&after)
	if held := after.TotalAlloc - before.TotalAlloc; held > 8*size {
		t.Errorf("%d bytes were made for a file of %d", held, size)
	}
}

var _ io.ReaderAt = blanks{}
