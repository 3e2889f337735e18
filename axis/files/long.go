package files

import (
	"fmt"
	"io"

	"github.com/zeebo/blake3"
)

// maxLong is how many bytes of a file that is too large to keep are read for its digest. A sparse one may have any length.
const maxLong = 4 << 30

// long says what a file holds that is too large to keep: how many bytes it has, and their keyed digest. What cannot be read has none.
func long(f io.Reader, size int64, s Scrubber) string {
	said := fmt.Sprintf("%d bytes", size)
	if s == nil || size > maxLong {
		return said
	}
	h := blake3.New()
	if _, err := io.Copy(h, io.LimitReader(f, size)); err != nil {
		return said
	}
	return said + ", " + s.KeyedDigest(h.Sum(nil))
}

// Long returns what stood in the end at the paths that a call named, by the paths of records, where that was too large to keep.
func (j *Journal) Long() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[string]string, len(j.long))
	for n, said := range j.long {
		out[n.root.opts.place(n.path())] = said
	}
	return out
}
