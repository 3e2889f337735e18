package verify

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// placeholderAt is a placeholder of package scrub at the beginning of a text.
var placeholderAt = lazyregexp.New(`^td_[A-Za-z0-9_.-]{1,200}?_[0-9a-f]{12}`)

const (
	resyncText   = 24        // bytes behind a placeholder that are looked for
	resyncWithin = 512 << 10 // where, in bytes: the longest secret that is passed by
)

// sameOutput compares what the tape and the cassette have of one stream, and returns where the cassette's differs from it; -1 for
// nowhere. Where the tape has a placeholder the cassette has a mask as long as the secret; and a secret that only the screen
// shows is masked in the cassette alone.
func sameOutput(taped, shown io.Reader) (at int64, err error) {
	a, b := bufio.NewReaderSize(taped, 64<<10), bufio.NewReaderSize(shown, resyncWithin)
	for {
		x, errX := some(a)
		y, errY := some(b)
		if err := errors.Join(errX, errY); err != nil {
			return 0, err
		}
		if len(x) == 0 && len(y) == 0 {
			return -1, nil
		}
		n := commonBytes(x, y)
		a.Discard(n) // it is buffered
		b.Discard(n)
		at += int64(n)
		if n == len(x) && n > 0 || n == len(y) && n > 0 {
			continue
		}
		skipped, ok := maskedAt(a, b)
		if !ok {
			return at, nil
		}
		at += skipped
	}
}

// some returns what is buffered, or can be; nothing at the end.
func some(r *bufio.Reader) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, recording.NotEOF(err)
	}
	return r.Peek(r.Buffered())
}

func commonBytes(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// maskedAt passes by a secret that a and b hide in their ways, and returns how long it is in b.
func maskedAt(a, b *bufio.Reader) (n int64, ok bool) {
	x, _ := a.Peek(300)
	if p := placeholderAt.Find(x); p != nil {
		a.Discard(len(p))
		return resync(a, b)
	}
	y, _ := b.Peek(1)
	if len(x) == 0 || len(y) == 0 || y[0] != screen.Mask && (x[0] < utf8.RuneSelf || y[0] < utf8.RuneSelf) {
		return 0, false
	}
	a.Discard(1)
	b.Discard(1)
	return 1, true
}

// resync finds in b what stands in a next.
func resync(a, b *bufio.Reader) (n int64, ok bool) {
	next, _ := a.Peek(resyncText + len("td_") - 1) // one that begins within is seen
	if i := bytes.Index(next, []byte("td_")); i > 0 {
		next = next[:i]
	}
	next = next[:min(len(next), resyncText)]
	y, _ := b.Peek(resyncWithin)
	i := len(y)
	switch {
	case bytes.HasPrefix(next, []byte("td_")): // two secrets in a row
		i = 0
	case len(next) > 0:
		i = findMasked(y, next)
	}
	if i < 0 {
		return 0, false
	}
	b.Discard(i)
	return int64(i), true
}

// findMasked returns where text stands in b, of which some may be masked there; -1 for nowhere.
func findMasked(b, text []byte) int {
	for i := range len(b) - len(text) + 1 {
		plain := 0
		for k, c := range text {
			if b[i+k] == c {
				plain++
			} else if b[i+k] != screen.Mask {
				plain = -1
				break
			}
		}
		if 2*plain >= len(text) && b[i+len(text)-1] == text[len(text)-1] {
			return i
		}
	}
	return -1
}
