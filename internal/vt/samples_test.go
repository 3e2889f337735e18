package vt

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const samples = "../../../shared/samples/terminal"

// sample reads a gzipped JSON file of the samples; the test is skipped where they are not there.
func sample(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(samples, name))
	if os.IsNotExist(err) {
		t.Skipf("no %s: the samples of terminals are not beside this checkout", filepath.Join(samples, name))
	}
	if err != nil {
		t.Fatal(err)
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(zr).Decode(v); err != nil {
		t.Fatal(err)
	}
}

// A conformance is one of the 174 cases.
type conformance struct {
	Suite, Name string
	Cols, Rows  int
	Steps       []step
}

// A step writes, changes the size or says what is to be seen. Places are [column, row], areas [row, column, row, column].
type step struct {
	Write  []byte
	Resize []int
	Reset  []int
	Rows   []string
	Cursor []int
	Output *string
	Row    *int
	Cell   []int
	Chars  []int
	Want   string
	Width  int
}

// run returns the first thing that is not as it should be.
func (c *conformance) run() error {
	var out []byte
	var s *Screen
	start := func(cols, rows int) {
		s = New(&Options{Cols: cols, Rows: rows, Reply: func(p []byte) { out = append(out, p...) }})
	}
	start(c.Cols, c.Rows)
	for i := range c.Steps {
		st := &c.Steps[i]
		switch {
		case st.Write != nil:
			out = out[:0]
			s.Write(st.Write)
		case st.Reset != nil:
			start(st.Reset[0], st.Reset[1])
		case st.Resize != nil:
			s.Resize(st.Resize[1], st.Resize[0])
		default:
			if err := st.check(s, string(out)); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
	}
	return nil
}

func (st *step) check(s *Screen, out string) error {
	differ := func(what string, got, want any) error {
		if got == want {
			return nil
		}
		return fmt.Errorf("%s: got %q, want %q", what, fmt.Sprint(got), fmt.Sprint(want))
	}
	cut := func(text string) string { return strings.TrimRight(text, " ") }
	switch {
	case st.Rows != nil:
		for i, want := range st.Rows {
			if err := differ(fmt.Sprint("row ", i), s.Row(i), cut(want)); err != nil {
				return err
			}
		}
	case st.Cursor != nil:
		c := s.Cursor()
		return differ("cursor", fmt.Sprint([]int{c.Col, c.Row}), fmt.Sprint(st.Cursor))
	case st.Output != nil:
		return differ("output", out, *st.Output)
	case st.Row != nil:
		return differ(fmt.Sprint("row ", *st.Row), s.Row(*st.Row), cut(st.Want))
	case st.Cell != nil:
		c := s.Cell(st.Cell[1], st.Cell[0])
		return differ("cell", fmt.Sprint(cut(c.Text), c.Width), fmt.Sprint(st.Want, st.Width))
	case st.Chars != nil:
		var b strings.Builder
		for row := st.Chars[0]; row < st.Chars[2]; row++ {
			for _, c := range s.AppendCells(nil, row)[st.Chars[1]:st.Chars[3]] {
				if c.Text == "" && c.Width == 1 {
					c.Text = " "
				}
				b.WriteString(c.Text)
			}
		}
		return differ("chars", cut(b.String()), cut(st.Want))
	}
	return nil
}

// against are the cases that contradict xterm, and how.
var against = map[string]string{
	"11state_movecursor#28 Vertical Position Backward": "VPB is not in xterm",
	"decaln_reset":      "DECALN moves the cursor home in xterm",
	"saved_cursor_alt":  "an underscore stays one among line drawing",
	"selective_erasure": "DECSED erases what is not protected",
	"13state_edit#8 IL": "IL moves the cursor to the left margin",
	"61screen_unicode#4 10 combining accents should not crash": "a cell holds more than five marks",
}

func TestCases(t *testing.T) {
	var cases []conformance
	sample(t, "cases.json.gz", &cases)
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

// A recorded is a real program's output, with two references' screens at some places of it.
type recorded struct {
	Name       string
	Cols, Rows int
	Raw        []byte `json:"raw_base64"`
	Frames     []struct {
		Offset      int
		Xterm, Tmux struct {
			Rows    []string
			CX, CY  int
			Visible bool
			Alt     bool
		}
	}
}

var recordings = []string{"apt", "htop", "ink", "less", "ls", "mc", "npm", "top", "unicode", "vim", "vttest"}

func TestRecordings(t *testing.T) {
	for _, name := range recordings {
		t.Run(name, func(t *testing.T) {
			var r recorded
			sample(t, name+".json.gz", &r)
			s, at, rows := New(&Options{Cols: r.Cols, Rows: r.Rows}), 0, 0
			for _, f := range r.Frames {
				s.Write(r.Raw[at:f.Offset])
				at = f.Offset
				for i, want := range f.Xterm.Rows {
					want = strings.TrimRight(want, " ")
					if want != strings.TrimRight(f.Tmux.Rows[i], " ") {
						continue
					}
					rows++
					if got := s.Row(i); got != want {
						t.Errorf("at %d, row %d: got %q, want %q", f.Offset, i, got, want)
					}
				}
				if c := s.Cursor(); f.Xterm.CX == f.Tmux.CX && f.Xterm.CY == f.Tmux.CY && (c.Row != f.Xterm.CY || c.Col != min(f.Xterm.CX, r.Cols-1)) {
					t.Errorf("at %d: cursor at %d,%d, want %d,%d", f.Offset, c.Row, c.Col, f.Xterm.CY, f.Xterm.CX)
				}
				if f.Xterm.Alt == f.Tmux.Alt && s.Alt() != f.Xterm.Alt {
					t.Errorf("at %d: alternate screen %v", f.Offset, s.Alt())
				}
			}
			t.Logf("%d rows", rows)
		})
	}
}
