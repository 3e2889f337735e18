package cassette

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// pieces are what the screens of TestQuick are made of: plain and not.
var pieces = []string{"hello", "\r\n", "\r\n", "\r\n", "wörld 漢字", "\x1b[31m", "\x1b[0m", "\t", "\b\b", "\n", "\r", "👩‍👩‍👧", "e\u0301", "\x1b[1;38:5:9m",
	"\x1b[2J", "\x1b[3;5H", "\x1b[2;6r", "\x1b[?1049h", "\x1b[?1049l", "\x1b]0;title\a", "\x1b(0", "\x1b(B", "\x0e", "\x0f", "\x1b[4h", "\x1b[4l",
	"\x1b[?7l", "\x1b[?7h", "\x1b[?69h\x1b[3;12s", "\x1b[?69l", "\x1b[?45h", "\x1b[?45l", "\x1b7", "\x1b8", "\xff", "\xc2", "\x9b", "\u009b5A", "\x1b", "\x1b[", "\x1bM",
	"\x1b[20h", "\x1b[20l", "\x1b[5b", "\x1b[?6h", "\x1bc", "\x18", "\x1b[!p", "a very long line that goes over the end of the screen, and on, and on"}

// TestQuick compares a screen that skips with one that does not, where every text has many lines between its rare sequences.
func TestQuick(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		size := Size{2 + rnd.IntN(6), 8 + rnd.IntN(12)}
		const above = 5
		o := &vt.Options{Rows: size.Rows, Cols: size.Cols, Scrollback: above}
		full, q := vt.New(o), &still{quick{screen: vt.New(o), above: above}}
		for step := range 30 {
			p := piece(rnd)
			full.Write(p)
			for len(p) > 0 {
				n := 1 + rnd.IntN(len(p))
				q.Write(p[:n])
				p = p[n:]
			}
			if step%9 == 8 {
				size = Size{2 + rnd.IntN(6), 8 + rnd.IntN(12)}
				full.Resize(size.Rows, size.Cols)
				q.Resize(size)
			}
			if rnd.IntN(3) > 0 {
				continue
			}
			got := q.sync()
			if !slices.Equal(got.Text(), full.Text()) || got.Cursor().Row != full.Cursor().Row || got.Cursor().Col != full.Cursor().Col || got.Title() != full.Title() {
				t.Fatalf("seed %d, step %d:\n%q %v\n%q %v", seed, step, got.Text(), got.Cursor(), full.Text(), full.Cursor())
			}
		}
	}
}

// piece returns a text, often one that is long and plain enough to be cut.
func piece(rnd *rand.Rand) []byte {
	var b []byte
	for range rnd.IntN(12) {
		b = append(b, pieces[rnd.IntN(len(pieces))]...)
	}
	if rnd.IntN(2) == 0 {
		for i := range 20 + rnd.IntN(30) {
			b = fmt.Appendf(b, "\x1b[3%dmline %d %s\r\n", i%8, i, pieces[rnd.IntN(9)])
		}
	}
	return b
}
