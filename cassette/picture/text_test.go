package picture

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func wholeText(t *testing.T, s *session, o *Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := writeText(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A session is read as what scrolled off and what is left, wrapped lines whole; however long it is, and however the window
// changes meanwhile.
func TestTextIsAllThatWasPrinted(t *testing.T) {
	for _, lines := range []int{3, 100, 50000} {
		for _, resized := range []bool{false, true} {
			var want strings.Builder
			s := script(10, 20, time.Second)
			var events []event
			for i := range lines {
				line := fmt.Sprintf("line %d of %d, which is longer than the screen", i, lines)
				want.WriteString(line + "\n")
				events = append(events, event{at: time.Duration(i), output: []byte(line + "   \r\n")})
				if resized && i%(lines/3) == lines/6 {
					events = append(events, event{at: time.Duration(i), size: &size{10 + i%7, 15 + i%11}})
				}
			}
			s.duration = time.Duration(lines)
			s.events = func(yield func(event, error) bool) {
				for _, e := range events {
					if !yield(e, nil) {
						return
					}
				}
			}
			if got := wholeText(t, s, nil); got != want.String() {
				i := 0
				for i < min(len(got), want.Len()) && got[i] == want.String()[i] {
					i++
				}
				t.Errorf("%d lines, resized %t: %d bytes, expected %d; they differ after %q: %q", lines, resized, len(got), want.Len(), got[max(i-60, 0):i], got[i:min(i+60, len(got))])
			}
		}
	}
}

func TestTextOfOneTime(t *testing.T) {
	s := script(5, 20, time.Second, "one\r\n", "\x1b]0;t\atwo  \r\n", "\r\n三\u202e!\x1b[2;1Hx")
	for at, want := range map[time.Duration]string{
		time.Nanosecond: "one\n", 1500 * time.Millisecond: "one\ntwo\n", 0: "one\nxwo\n\n三\uFFFD!\n",
	} {
		var b bytes.Buffer
		if err := writeScreen(&b, s, &Options{At: at}); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("at %v the screen is %q, expected %q", at, b.String(), want)
		}
	}
}

// Of a program that takes its screen away again, the text is that screen; of a shell that it was started from, the shell's.
func TestTextOfAProgramThatTookItsScreenAway(t *testing.T) {
	editor := "\x1b[?1049h\x1b[2J\x1b[2;1Hedited\x1b[?25l\x1b[?2004l\x1b[?1049l"
	if got := wholeText(t, script(5, 20, time.Second, editor), nil); got != "edited\n" {
		t.Errorf("an editor alone is %q, expected its last screen", got)
	}
	leaves := "\x1b[?1049h\x1b[Hfirst\r\n~\x1b[5;1H4 lines written\r\r\n\x1b[?2004l\x1b[?1049l"
	if got := wholeText(t, script(5, 20, time.Second, leaves), nil); got != "first\n~\n\n\n4 lines written\n" {
		t.Errorf("an editor that goes to a new line before it leaves is %q, expected its first row too", got)
	}
	if got := wholeText(t, script(5, 20, time.Second, "$ vi\r\n", editor, "$ "), nil); got != "$ vi\n$\n" {
		t.Errorf("a shell is %q, expected its lines", got)
	}
}
