package jsonscan

import (
	"strings"
	"testing"
)

// Strings are written in steps of sixteen and eight bytes: each length and each place of an escape goes another way.
func TestAnEscapeIsWrittenAtEveryPlace(t *testing.T) {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for n := range len(plain) {
		for at := range n + 1 {
			for c, escaped := range map[string]string{`"`: `\"`, `\`: `\\`, "\n": `\n`, "\x01": `\u0001`, "\"\"": `\"\"`, "é": "é", "": ""} {
				got := string(AppendText([]byte("["), plain[:at]+c+plain[at:n]))
				if want := `["` + plain[:at] + escaped + plain[at:n] + `"`; got != want {
					t.Fatalf("%q at %d of %d: %s, want %s", c, at, n, got, want)
				}
			}
		}
	}
	for n := range 100 {
		if got, want := string(AppendText(nil, strings.Repeat("\x00", n))), `"`+strings.Repeat(`\u0000`, n)+`"`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Most of what is written is short, into memory that is taken for it.
func TestAShortTextTakesLittleMemory(t *testing.T) {
	if got := cap(AppendText(nil, "user")); got > 64 {
		t.Errorf("%d bytes for a text of 4", got)
	}
}

func TestTextThatIsNotUTF8(t *testing.T) {
	if got, want := string(AppendText([]byte("x"), "long enough a text\xff\xfe é")), "x\"long enough a text\ufffd\ufffd é\""; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLineEndsBetweenTokensAreDropped(t *testing.T) {
	if got, want := string(AppendLine([]byte("x"), []byte("{\r\n \"a\\n\":\n1}"))), `x{ "a\n":1}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
