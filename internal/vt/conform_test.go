package vt_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// samples is where the shared samples of terminals lie: conformance cases, and recordings of real programs with the screens that
// two other emulators show. They are no part of this repository but lie beside its checkout.
const samples = "../../../shared/samples/terminal"

// readSample decodes a gzipped JSON file.
func readSample(name string, v any) error {
	file := filepath.Join(samples, name+".json.gz")
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := json.NewDecoder(zr).Decode(v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// A conformCase is a list of steps, the last of which say what is to be seen.
type conformCase struct {
	Suite, Name string
	Cols, Rows  int
	Steps       []step
}

// conformCases reads every case.
func conformCases() ([]conformCase, error) {
	var cases []conformCase
	err := readSample("cases", &cases)
	return cases, err
}

// A step writes, changes the size or says what is to be seen. Cursor and Cell are [column, row], sizes [columns, rows], Chars
// [row, column, row, column] with the end behind it. Output is what the terminal answered to the last write.
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
func (c *conformCase) run() error {
	var out []byte
	var s *vt.Screen
	start := func(cols, rows int) {
		s = vt.New(&vt.Options{Cols: cols, Rows: rows, Reply: func(p []byte) { out = append(out, p...) }})
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

func cut(text string) string { return strings.TrimRight(text, " ") }

func differ(what string, got, want any) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s: got %q, want %q", what, fmt.Sprint(got), fmt.Sprint(want))
}

func (st *step) check(s *vt.Screen, out string) error {
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
		return differ("chars", cut(characters(s, st.Chars)), cut(st.Want))
	default:
		return fmt.Errorf("a step of an unknown kind")
	}
	return nil
}

func characters(s *vt.Screen, area []int) string {
	var b strings.Builder
	for row := area[0]; row < area[2]; row++ {
		for _, c := range s.AppendCells(nil, row)[area[1]:area[3]] {
			if c.Text == "" && c.Width == 1 {
				c.Text = " "
			}
			b.WriteString(c.Text)
		}
	}
	return b.String()
}
