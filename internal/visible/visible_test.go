package visible

import (
	"errors"
	"strings"
	"testing"
)

const hostile = "a\x1b]52;c;eA==\x07b\rc\td\ne\u009b2Jf\u202eg\u2028h\xffi\x7f"

func TestLine(t *testing.T) {
	const want = `a\x1b]52;c;eA==\x07b\rc\td\ne\u009b2Jf\u202eg\u2028h\xffi\x7f`
	if got := Line(hostile); got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
	for _, s := range []string{"", "plain", "Ünïcode 漢字 👩‍💻", `C:\new`, "\uFFFD"} {
		if Line(s) != s {
			t.Errorf("Line(%q) = %q", s, Line(s))
		}
	}
}

func TestText(t *testing.T) {
	const want = "a\\x1b]52;c;eA==\\x07b\\rc\td\ne\\u009b2Jf\\u202eg\\u2028h\\xffi\\x7f"
	if got := Text(hostile); got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
}

func TestJSON(t *testing.T) {
	const in = "{\n\t\"a\": \"\u009b\u202e\x7f \\u001b\"\n}"
	if got, want := JSON(in), "{\n\t\"a\": \"\\u009b\\u202e\\u007f \\u001b\"\n}"; got != want {
		t.Errorf("JSON = %q, want %q", got, want)
	}
}

func TestError(t *testing.T) {
	err := errors.Join(errors.New("one\x1b[2J"), errors.New("two\n  three"))
	if got, want := Error(err), "one\\x1b[2J\n  two\n  three"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
}

type named string

func (n named) String() string { return "named " + string(n) }

func TestFprintf(t *testing.T) {
	var b strings.Builder
	Fprintf(&b, "%d %s|%v|%s|%v|%s|%v\n", 7, "x\ny", errors.New("e\r"), named("\x1b"), []string{"l\x1b"}, []byte("b\x07"), struct{ s string }{"\x1b"})
	Fprintln(&b, "p\nq", 1.5)
	if got, want := b.String(), "7 x\\ny|e\\r|named \\x1b|[l\\x1b]|b\\x07|{\\x1b}\np\\nq 1.5\n"; got != want {
		t.Errorf("Fprintf = %q, want %q", got, want)
	}
}
