package terminal_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

func TestLeftovers(t *testing.T) {
	for _, test := range []struct {
		name, shown string
		open        bool
		undo        string
	}{
		{"nothing", "", false, ""},
		{"a line", "one\r\n", false, ""},
		{"half a line", "one\r\ntwo", true, ""},
		{"a prompt taken away", "one\r\n:\r\x1b[K", false, ""},
		{"a progress bar", "50%\r60%\r", true, ""},
		{"a colour at the end of a line", "\x1b[31mred\x1b[0m\r\n\x1b[m", false, ""},
		{"a title", "one\r\n\x1b]0;the title\x07\x1b]2;another\x1b\\", false, ""},
		{"a full screen, left", "\x1b[?1049h\x1b[?1h\x1b=text\x1b[?1l\x1b>\x1b[?1049l", false, ""},
		{"a full screen over half a line, left", "$ \x1b[?1049htext\r\n\x1b[?1049l", true, ""},
		{"a full screen", "\x1b[?1049h\x1b[?25ltext", true, "\x1b[?25h\x1b[?1049l"},
		{"left twice", "\x1b[?1049htext\x1b[?1049l\x1b[?1049l\r\n", false, ""},
		{"several at once", "\x1b[?1000;1006;2004h", false, "\x1b[?1000l\x1b[?1006l\x1b[?2004l"},
		{"several, off", "\x1b[?1000;1006;2004h\x1b[?2004;1006;1000l", false, ""},
		{"keypad, keys, region, colours, insert", "\x1b=\x1b[>1u\x1b[>4;2m\x1b[2;5r\x1b[1m\x1b[4h", false, "\x1b[<1u\x1b[>4;0m\x1b>\x1b[4l\x1b[0m\x1b7\x1b[r\x1b8"},
		{"those taken back", "\x1b=\x1b[>1u\x1b[>4;2m\x1b[2;5r\x1b[1m\x1b>\x1b[<u\x1b[>4;0m\x1b[r\x1b[0m", false, ""},
		{"a reset", "\x1b[?1049h\x1b[?25l\x1b=\x1bc", false, ""},
		{"no mode of a terminal", "\x1b[?12345h\x1b[20h\x1b[?h", false, ""},
		{"a character set", "\x1b(Bone\r\n\x1b(0", false, ""},
		{"a clear screen", "text\x1b[H\x1b[2J", false, ""},
		{"what never ends", "\x1b[" + string(make([]byte, 10_000)) + "h", false, ""},
	} {
		for _, step := range []int{1, len(test.shown)} { // however the bytes are split
			var l terminal.Leftovers
			for b := []byte(test.shown); len(b) > 0; b = b[step:] {
				l.Write(b[:step])
			}
			if got := l.OpenLine(); got != test.open {
				t.Errorf("%s: open %v", test.name, got)
			}
			undo := l.Undo()
			if string(undo) != test.undo {
				t.Errorf("%s: undone by %q, want %q", test.name, undo, test.undo)
			}
			l.Write(undo)
			if again := l.Undo(); len(again) != 0 {
				t.Errorf("%s: left after all: %q", test.name, again)
			}
		}
	}
}

func FuzzLeftovers(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b]0;t\x07\x1b[<5u\x1b[>1u"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l terminal.Leftovers
		l.Write(b)
		l.Write([]byte("\x18\x1b\\\x1b\\\r")) // out of whatever it is in
		l.Write(l.Undo())
		if again := l.Undo(); len(again) != 0 {
			t.Errorf("%q leaves %q", b, again)
		}
	})
}
