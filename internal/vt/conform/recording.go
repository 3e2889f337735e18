package conform

import (
	"fmt"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// Recordings are the names of the programs that were recorded.
var Recordings = []string{"apt", "htop", "ink", "less", "ls", "mc", "npm", "top", "unicode", "vim", "vttest"}

// A Recording is what a program wrote, with the screens of two other emulators after some of it.
type Recording struct {
	Name       string
	Cols, Rows int
	Raw        []byte `json:"raw_base64"`
	Frames     []Frame
}

// A Frame is what they show after Offset bytes.
type Frame struct {
	Offset      int
	Xterm, Tmux Shown
}

// Shown is a screen.
type Shown struct {
	Rows    []string
	CX, CY  int
	Visible bool
	Alt     bool
}

// Open reads a recording by its name.
func Open(dir, name string) (*Recording, error) {
	r := new(Recording)
	return r, read(filepath.Join(dir, name+".json.gz"), r)
}

// A Result says how many rows the other two agree on, and what is wrong where they do: a line each.
type Result struct {
	Rows int
	Bad  []string
}

// Run compares rows, cursor and the kind of screen where the two agree.
func (r *Recording) Run() *Result {
	s, at, out := vt.New(&vt.Options{Cols: r.Cols, Rows: r.Rows}), 0, new(Result)
	for i := range r.Frames {
		f := &r.Frames[i]
		s.Write(r.Raw[at:f.Offset])
		at = f.Offset
		out.frame(s, f, r.Cols)
	}
	return out
}

func (out *Result) frame(s *vt.Screen, f *Frame, cols int) {
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
