package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// elements reads a list as a reader of a long one does: what stands between its elements too.
func elements(r io.Reader, limit int) (all string, values []string, err error) {
	s := NewStream(r, limit)
	s.Hold()
	s.Begin('[')
	for s.More(']') {
		s.Peek()
		v := string(s.Raw())
		between := string(s.Held())
		s.Hold()
		values = append(values, v)
		all += between
	}
	all += string(s.Held())
	return all, values, s.End()
}

func TestStreamGivesElementsAsTheyStand(t *testing.T) {
	long := `{"long":"` + strings.Repeat("x\\\"\\\\", linesBuffer/2) + `"}`
	want := []string{`1`, `"a\"]"`, `{"a":[1,{"b":"}"}]}`, `[ ]`, long, `null`, `-1.5e3`, `"\\"`, long}
	text := "\n [" + strings.Join(want, " ,\n ") + "\n]"
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "data with the end": iotest.DataErrReader,
	} {
		all, got, err := elements(wrap(strings.NewReader(text)), 8*linesBuffer)
		if err != nil || all != text || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %d bytes of %d, %d elements: %v", name, len(all), len(text), len(got), err)
		}
	}
}

func TestStreamStepsThroughObjects(t *testing.T) {
	text := `{"skip":"` + strings.Repeat("y", 3*linesBuffer) + `", "a\u0062" : {"list":[ {"n":1}, {"n":2} ], "more":[[1,2],{"x":"]"}]},"end":true}` + "\n"
	s := NewStream(iotest.HalfReader(strings.NewReader(text)), linesBuffer)
	var got []string
	for s.Begin('{'); s.More('}'); {
		switch key := string(s.Key()); key {
		case "ab":
			for s.Begin('{'); s.More('}'); {
				if string(s.Key()) != "list" {
					s.Skip()
					continue
				}
				for s.Begin('['); s.More(']'); {
					got = append(got, string(s.Raw()))
				}
			}
		default:
			got = append(got, key)
			s.Skip()
		}
	}
	if err := s.End(); err != nil || strings.Join(got, " ") != `skip {"n":1} {"n":2} end` {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestStreamEndsEarly(t *testing.T) {
	text := `[1,{"a":"b\"c"},[true]]`
	for n := range len(text) {
		if _, _, err := elements(strings.NewReader(text[:n]), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v", text[:n], err)
		}
	}
}

func TestStreamRefuses(t *testing.T) {
	for _, text := range []string{`{`, `[1 2]`, `[,]`, `[1,]`, `[1]x`, `x`, `[:]`, `["` + strings.Repeat("x", 200) + `"]`, `[` + strings.Repeat("[", MaxDepth+1)} {
		if _, _, err := elements(strings.NewReader(text), 100); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	deep := "[" + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + "]"
	if _, _, err := elements(strings.NewReader(deep), 8<<20); err == nil || !strings.Contains(err.Error(), tooDeep) {
		t.Error(err)
	}
	wrong := errors.New("wrong")
	if _, _, err := elements(io.MultiReader(strings.NewReader(`["a"`), iotest.ErrReader(wrong)), 100); !errors.Is(err, wrong) {
		t.Error(err)
	}
}

func TestStreamSkipsAMark(t *testing.T) {
	for _, text := range []string{byteOrderMark + "[1]", "[1]", "1", "", "\n2"} {
		want := strings.TrimPrefix(strings.TrimSpace(text), byteOrderMark)
		s := NewStream(iotest.OneByteReader(strings.NewReader(text)), 100)
		s.SkipMark()
		s.SkipMark()
		if got := string(s.Raw()); got != want && s.Err() == nil {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if end := s.Offset(); s.Err() == nil && end != int64(len(text)) {
			t.Errorf("%q: %d bytes were read", text, end)
		}
	}
}

func TestStreamSaysWhere(t *testing.T) {
	s := NewStream(iotest.OneByteReader(strings.NewReader("[\n1,\n\n2,\n{\"a\":\n3},4]\n")), 100)
	var lines []int
	for s.Begin('['); s.More(']'); {
		s.Peek()
		lines = append(lines, s.Line())
		s.Raw()
	}
	if got := fmt.Sprint(lines); got != "[2 4 5 6]" || s.End() != nil || s.Offset() != 21 {
		t.Errorf("elements begin in the lines %s, and byte %d is the end: %v", got, s.Offset(), s.Err())
	}
}

func FuzzStream(f *testing.F) {
	for _, v := range values {
		f.Add("[" + v + "," + v + "]")
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, values, err := elements(strings.NewReader(text), 1<<20)
		parts, slow, slowErr := elements(iotest.OneByteReader(strings.NewReader(text)), 1<<20)
		if all != parts || fmt.Sprint(values) != fmt.Sprint(slow) || (err == nil) != (slowErr == nil) {
			t.Fatalf("byte by byte it is %q %q %v, else %q %q %v", parts, slow, slowErr, all, values, err)
		}
		var want []json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "[") {
			return
		}
		if Valid([]byte(text)) == nil && (err != nil || len(values) != len(want)) {
			t.Fatalf("%d elements, want %d: %v", len(values), len(want), err)
		}
		for i, v := range values {
			if v != string(want[i]) {
				t.Fatalf("element %d is %q, want %q", i, v, want[i])
			}
		}
	})
}
