package mcp

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// stderrSide is whose text that of stderr is said to be.
const stderrSide Side = "stderr"

const (
	// maxText is how much text, in bytes, is kept in memory until a message comes.
	maxText = 64 << 10
	// maxKey is how long, in bytes, the end of a key is waited for.
	maxKey = 1 << 20
)

// A text is what one source of a conversation writes that is no message: lines, and at the end a part of one. What it writes between two
// messages is scrubbed as one stream, for a secret may be spread over its lines, and so is a key that a message comes in the middle
// of. Where a record ends follows from the lines alone, not from what the scrubber knows: a replay knows other secrets.
type text struct {
	from  Side
	names *scrub.Scrubber // nil for none
	clean *scrub.Writer   // into out; nil for none
	out   bytes.Buffer    // what is decided and not written yet
	fed   int64           // bytes that the writer was given
	any   bool            // something is not written yet
	key   bool            // a key has begun, and not ended
	at    uint64          // place of the first line of that
	last  uint64          // place of the line that came last
}

func newText(from Side, s *scrub.Scrubber) *text {
	t := &text{from: from, names: s}
	t.begin()
	return t
}

// begin begins a stream.
func (t *text) begin() {
	if t.names != nil {
		t.clean, t.fed = t.names.Writer(&t.out), 0
	}
}

// add takes what came at a place.
func (t *text) add(b []byte, at uint64) {
	if !t.any {
		t.any, t.at = true, at
	}
	t.last = at
	if t.clean == nil {
		t.out.Write(b)
		return
	}
	_, over := t.names.LearnAll(clean(t.names, t.names.NamedInLines(b, true)))
	for i := range over {
		over[i].Start += t.fed
		over[i].End += t.fed
	}
	t.clean.HideAt(over)
	t.fed += int64(len(b))
	_, _ = t.clean.Write(b) // to memory
	if begin, end := bytes.LastIndex(b, keyBegins), bytes.LastIndex(b, keyEnds); begin != end {
		t.key = begin > end
	}
}

// What the first and the last line of a key of several lines begin with.
var keyBegins, keyEnds = []byte("-----BEGIN "), []byte("-----END ")

// full reports whether there is enough for a record.
func (t *text) full() bool { return t.out.Len() >= maxText || t.fed >= maxText }

// lines returns what there is and where it came, in the middle of a key the whole lines that stand before it; nil for nothing.
func (t *text) lines() (b []byte, at uint64) {
	if t.key && t.fed < maxKey {
		return t.take(bytes.LastIndexByte(t.out.Bytes(), '\n') + 1)
	}
	return t.rest()
}

// rest returns everything, and what follows is another stream.
func (t *text) rest() (b []byte, at uint64) {
	t.key = false
	if t.any && t.clean != nil {
		_ = t.clean.Close() // to memory
		t.begin()
	}
	return t.take(t.out.Len())
}

func (t *text) take(n int) (b []byte, at uint64) {
	if n == 0 {
		return nil, 0
	}
	b, at = bytes.Clone(t.out.Next(n)), t.at
	t.any = t.out.Len() > 0 || t.clean != nil && t.clean.Held() > 0
	t.at = t.last
	return b, at
}
