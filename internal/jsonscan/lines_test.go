package jsonscan

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 3*linesBuffer)
	text := "a\n\r\n\n" + long + "\nb\r\n" + long + long + "\nc"
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)),
		"error with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		l := NewLines(r, 8*linesBuffer)
		var got strings.Builder
		n := 0
		for {
			b, err := l.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n++
			if l.Line() != n || l.Offset() != int64(got.Len()) || l.Torn() != (string(b) == "c") {
				t.Errorf("%s: line %d at %d, torn %v, want %d at %d", name, l.Line(), l.Offset(), l.Torn(), n, got.Len())
			}
			got.Write(b)
		}
		if got.String() != text || n != 7 {
			t.Errorf("%s: %d lines of %d bytes came, want those of %d", name, n, got.Len(), len(text))
		}
	}
}

func TestLongLineIsAnError(t *testing.T) {
	for _, end := range []string{"\n", "", "\nmore\n"} {
		l := NewLines(strings.NewReader("ab\n"+strings.Repeat("x", 10)+end), 9)
		if _, err := l.Next(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := l.Next()
			var long *LongLineError
			if !errors.As(err, &long) || *long != (LongLineError{Line: 2, Offset: 3, Limit: 9}) {
				t.Errorf("behind %q: %v", end, err)
			}
		}
	}
	l := NewLines(strings.NewReader(strings.Repeat("x", 9)+"\n"), 9)
	if b, err := l.Next(); err == nil {
		t.Errorf("a line whose newline is too much: %q", b)
	}
	l = NewLines(strings.NewReader(strings.Repeat("x", 8)+"\n"), 9)
	if b, err := l.Next(); len(b) != 9 || err != nil {
		t.Errorf("a line of the limit: %q, %v", b, err)
	}
}

func TestLinesOfAFailingReader(t *testing.T) {
	wrong := errors.New("wrong")
	l := NewLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(wrong)), 100)
	if b, err := l.Next(); string(b) != "a\n" || err != nil {
		t.Fatal(string(b), err)
	}
	if _, err := l.Next(); !errors.Is(err, wrong) {
		t.Error(err)
	}
}
