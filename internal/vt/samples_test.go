package vt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// against are the cases that contradict xterm, and how.
var against = map[string]string{
	"11state_movecursor#28 Vertical Position Backward": "VPB is not in xterm",
	"decaln_reset":      "DECALN moves the cursor home in xterm",
	"saved_cursor_alt":  "an underscore stays one among line drawing",
	"selective_erasure": "DECSED erases what is not protected",
	"13state_edit#8 IL": "IL moves the cursor to the left margin",
	"61screen_unicode#4 10 combining accents should not crash": "a cell holds more than five marks",
}

func here(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the samples of terminals are not beside this checkout: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCases(t *testing.T) {
	cases, err := conformCases()
	here(t, err)
	passed := 0
	for _, c := range cases {
		err := c.run()
		why, known := against[c.Name]
		switch {
		case err == nil:
			passed++
			if known {
				t.Errorf("%s passes now, although %s", c.Name, why)
			}
		case !known:
			t.Errorf("%s %q: %v", c.Suite, c.Name, err)
		}
	}
	t.Logf("%d of %d cases", passed, len(cases))
}

func TestRecordings(t *testing.T) {
	for _, name := range recordings {
		t.Run(name, func(t *testing.T) {
			r, err := openRecording(name)
			here(t, err)
			result := r.run()
			for _, bad := range result.Bad {
				t.Error(bad)
			}
			t.Logf("%d rows", result.Rows)
		})
	}
}

// said is everything that a screen says through its exported methods.
func said(s *vt.Screen) string {
	var b strings.Builder
	rows, cols := s.Size()
	fmt.Fprintln(&b, s.Cursor(), s.Alt(), s.Ground(), s.Offset(), s.Title())
	for row := range rows {
		fmt.Fprintf(&b, "%q %v %v", s.Row(row), s.Wrapped(row), s.AppendCells(nil, row))
		for col := range cols {
			fmt.Fprint(&b, s.Origin(row, col))
		}
	}
	for i := range s.ScrollbackLen() {
		fmt.Fprintf(&b, "%q %v", s.ScrollbackRow(i), s.ScrollbackWrapped(i))
	}
	return b.String()
}

// mutate changes a few places of a stream: bytes lost, doubled, changed, or brought from elsewhere.
func mutate(raw []byte, r *rand.Rand) []byte {
	raw = slices.Clone(raw)
	for range 1 + r.IntN(20) {
		at := r.IntN(len(raw))
		n := min(1+r.IntN(30), len(raw)-at)
		switch r.IntN(4) {
		case 0:
			raw = slices.Delete(raw, at, at+n)
		case 1:
			raw = slices.Insert(raw, at, raw[at:at+n]...)
		case 2:
			raw[at] = byte(r.Uint32())
		case 3:
			from := r.IntN(len(raw))
			copy(raw[at:at+n], raw[from:])
		}
	}
	return raw
}

// TestMutatedRecordings writes recordings that were damaged, whole and in pieces, with a resize in the middle.
func TestMutatedRecordings(t *testing.T) {
	for i, name := range recordings {
		rec, err := openRecording(name)
		here(t, err)
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			raw := mutate(rec.Raw, r)
			half := r.IntN(len(raw))
			run := func(n int) string {
				var replies []byte
				s := vt.New(&vt.Options{Rows: rec.Rows, Cols: rec.Cols, Origins: true, Scrollback: 50,
					Reply: func(p []byte) { replies = append(replies, p...) }})
				for _, part := range [][]byte{raw[:half], raw[half:]} {
					for p := range slices.Chunk(part, n) {
						s.Write(p)
					}
					s.Resize(rec.Rows-5, rec.Cols-17)
				}
				return said(s) + string(replies)
			}
			whole := run(len(raw))
			for _, n := range []int{1, 13} {
				if run(n) != whole {
					t.Errorf("%s, seed %d: another screen in pieces of %d", name, seed, n)
				}
			}
		}
	}
}
