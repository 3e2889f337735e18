package screen

import (
	"fmt"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// TestWhatMoves tells rows that change by themselves from those that scroll, come once, or answer something.
func TestWhatMoves(t *testing.T) {
	at := func(row int, text string) string { return fmt.Sprintf("\x1b7\x1b[%d;1H\x1b[K%s\x1b8", row, text) }
	for _, test := range []struct {
		name   string
		frame  func(i int) string // printed every 100 ms
		cause  bool               // something comes each time
		moving []fidelity.Moving
	}{
		{"a spinner", func(i int) string { return at(2, string(`-\|/`[i%4])+" working") }, false, []fidelity.Moving{{Row: 1, Head: 0, Tail: 8}}},
		{"a number", func(i int) string { return at(2, fmt.Sprintf("turn %d of many", 1000+i)) }, false, []fidelity.Moving{{Row: 1, Head: 5, Tail: 8}}},
		{"lines that scroll", func(i int) string { return fmt.Sprintf("\x1b[24;1Hline %d\n", i) }, false, nil},
		{"lines that come", func(i int) string { return at(3+i, "a line") }, false, nil},
		{"answers", func(i int) string { return at(2, fmt.Sprint("answer ", i)) }, true, nil},
		{"nothing", func(int) string { return "" }, false, nil},
	} {
		track := NewTracker(24, 80)
		ms := int64(0)
		for i := range 12 {
			ms += 100
			if test.cause {
				track.Cause(ms - 10)
			}
			track.Output(ms, []byte(test.frame(i)))
		}
		s, _ := track.Screen(ms + 20)
		if fmt.Sprint(s.Moving) != fmt.Sprint(test.moving) {
			t.Errorf("%s: %v moves, want %v", test.name, s.Moving, test.moving)
		}
		if s, _ = track.Screen(ms + 5000); len(s.Moving) > 0 {
			t.Errorf("%s: %v moves, and has rested", test.name, s.Moving)
		}
	}
}

func TestKeyNames(t *testing.T) {
	for keys, want := range map[string]string{
		"ihello\x1b:wq\r": "ihello ESC :wq ENTER", "\x03": "^C", "\x1b[A\x1bOB": "UP DOWN", "\x1b[<0;3;4M": "MOUSE0;3;4M",
		"\x1b[200~two words\x1b[201~": "PASTE[ two words ]", "a\x7f": "a BACKSPACE", "ä": "ä", "\x1b": "ESC", "\x1b[": "ESC [",
	} {
		if got := KeyNames([]byte(keys)); got != want {
			t.Errorf("%q: %q, want %q", keys, got, want)
		}
	}
}
