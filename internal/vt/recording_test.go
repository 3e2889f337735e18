package vt_test

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// recordings are the names of the programs that were recorded.
var recordings = []string{"apt", "htop", "ink", "less", "ls", "mc", "npm", "top", "unicode", "vim", "vttest"}

// A recording is what a program wrote, with the screens of two other emulators after some of it.
type recording struct {
	Name       string
	Cols, Rows int
	Raw        []byte `json:"raw_base64"`
	Frames     []frame
}

// A frame is what they show after Offset bytes.
type frame struct {
	Offset      int
	Xterm, Tmux shown
}

// shown is a screen.
type shown struct {
	Rows    []string
	CX, CY  int
	Visible bool
	Alt     bool
}

func openRecording(name string) (*recording, error) {
	r := new(recording)
	return r, readSample(name, r)
}

// A result says how many rows the other two agree on, and what is wrong where they do: a line each.
type result struct {
	Rows int
	Bad  []string
}

// run compares rows, cursor and the kind of screen where the two agree.
func (r *recording) run() *result {
	s, at, out := vt.New(&vt.Options{Cols: r.Cols, Rows: r.Rows}), 0, new(result)
	for i := range r.Frames {
		f := &r.Frames[i]
		s.Write(r.Raw[at:f.Offset])
		at = f.Offset
		out.frame(s, f, r.Cols)
	}
	return out
}

func (out *result) frame(s *vt.Screen, f *frame, cols int) {
	bad := func(err error) {
		if err != nil {
			out.Bad = append(out.Bad, fmt.Sprintf("after %d bytes: %v", f.Offset, err))
		}
	}
	for i := range f.Xterm.Rows {
		if want := cut(f.Xterm.Rows[i]); want == cut(f.Tmux.Rows[i]) {
			out.Rows++
			bad(differ(fmt.Sprint("row ", i), s.Row(i), want))
		}
	}
	c := s.Cursor()
	if x, y := f.Xterm.CX, f.Xterm.CY; x == f.Tmux.CX && y == f.Tmux.CY {
		bad(differ("cursor", fmt.Sprint([]int{c.Col, c.Row}), fmt.Sprint([]int{min(x, cols-1), y})))
	}
	if f.Xterm.Alt == f.Tmux.Alt {
		bad(differ("alternate screen", s.Alt(), f.Xterm.Alt))
	}
	if f.Xterm.Visible == f.Tmux.Visible {
		bad(differ("cursor visible", c.Visible, f.Xterm.Visible))
	}
}
