package check

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/golden"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// TB is what is used of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A Screen is what Golden compares: a snapshot of a session of axis/terminal, or what OfFrame, OfModel and OfText make.
type Screen interface {
	Lines() []string                        // every row from the top, without trailing blanks
	CursorAt() (row, col int, visible bool) // from 0
}

// A StyledScreen also knows how its cells are drawn.
type StyledScreen interface {
	Screen
	CellsOf(row int) []vt.Cell
}

// OfFrame returns the screen of a frame.
func OfFrame(f *cassette.Frame) Screen {
	return shown{f.Text, vt.Cursor{Row: f.Cursor.Row, Col: f.Cursor.Col, Visible: f.Cursor.Visible}}
}

// OfText returns a screen with these rows and no cursor.
func OfText(text string) Screen { return shown{splitRows(text), vt.Cursor{}} }

// OfModel returns the screen of a screen model as it is now and as it goes on, such as one that cassette.Reader.Screens gives.
func OfModel(s *vt.Screen) StyledScreen { return model{s} }

type shown struct {
	rows   []string
	cursor vt.Cursor
}

func (s shown) Lines() []string { return s.rows }
func (s shown) CursorAt() (row, col int, visible bool) {
	return s.cursor.Row, s.cursor.Col, s.cursor.Visible
}

type model struct{ *vt.Screen }

func (m model) Lines() []string { return m.Text() }
func (m model) CursorAt() (row, col int, visible bool) {
	c := m.Cursor()
	return c.Row, c.Col, c.Visible
}
func (m model) CellsOf(row int) []vt.Cell { return m.AppendCells(nil, row) }

// UpdateEnv is a variable of the environment that, set to 1, has Golden write its files.
const UpdateEnv = golden.UpdateEnv

// UpdateFlag gives a test binary the flag -update, unless it has one. Call it in the test package, since a flag that an import
// brought would clash with a package's own:
//
//	var _ = check.UpdateFlag()
//
// Golden looks for a flag of this name, whoever made it.
func UpdateFlag() *flag.Flag { return golden.Flag() }

// Golden compares a screen's text and cursor with the file at path. With -update (see UpdateFlag) or UpdateEnv it writes the file.
func Golden(t TB, s Screen, path string) {
	t.Helper()
	holds(t, GoldenText(s), path)
}

// GoldenStyled compares how the cells are drawn, too.
func GoldenStyled(t TB, s StyledScreen, path string) {
	t.Helper()
	holds(t, GoldenText(s)+stylesText(s), path)
}

func holds(t TB, got, path string) {
	t.Helper()
	if golden.Updating() {
		if err := writeGolden(path, got); err != nil {
			t.Fatalf("golden screen: %v", err)
		}
		return
	}
	b, err := os.ReadFile(path)
	switch want := strings.ReplaceAll(string(b), "\r\n", "\n"); {
	case errors.Is(err, fs.ErrNotExist):
		t.Errorf("there is no golden screen %s; %s writes it. The screen is\n%s", path, golden.How(), got)
	case err != nil:
		t.Fatalf("golden screen: %v", err)
	case want != got:
		t.Errorf("the screen is not the one of %s; where the change is meant, %s writes it anew\n%s", path, golden.How(),
			udiff.Unified(path, "the screen", want, got))
	}
}

func writeGolden(path, text string) error {
	if b, err := os.ReadFile(path); err == nil && string(b) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(path, []byte(text), &durable.Options{Mode: 0o644})
}

// GoldenText returns what a golden file holds: how many rows, then each row behind a bar, up to the last that is not blank, the
// cursor as ^ in a line of its own below its row. Control characters stand as escapes.
func GoldenText(s Screen) string {
	var b strings.Builder
	lines := s.Lines()
	row, col, shows := s.CursorAt()
	b.WriteString(sprintf("%s, cursor %s\n", countOf(len(lines), "row"), cursorText(row, col, shows)))
	last := len(trimRows(lines)) - 1
	if shows {
		last = max(last, row)
	}
	for i := 0; i <= last && i < len(lines); i++ {
		b.WriteString("|" + visible.Line(strings.TrimRight(lines[i], " ")) + "\n")
		if shows && i == row {
			b.WriteString(" " + strings.Repeat(" ", col) + "^\n")
		}
	}
	return b.String()
}

func cursorText(row, col int, shows bool) string {
	if !shows {
		return "hidden"
	}
	return sprintf("%d,%d", row, col)
}

// stylesText has a line for each run of cells that are drawn in one way, other than plain.
func stylesText(s StyledScreen) string {
	var b strings.Builder
	for row := range s.Lines() {
		cells := s.CellsOf(row)
		for from := 0; from < len(cells); {
			to := from + 1
			for to < len(cells) && cells[to].Style == cells[from].Style && cells[to].Link == cells[from].Link {
				to++
			}
			if text := styleText(&cells[from]); text != "" {
				b.WriteString(sprintf("%d,%d-%d %s\n", row, from, to-1, text))
			}
			from = to
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "styles\n" + b.String()
}

// styleText names how a cell is drawn; a plain one is "".
func styleText(c *vt.Cell) string {
	var all []string
	for _, a := range attributeBits {
		if c.Style.Attr&a.bit != 0 {
			all = append(all, a.name)
		}
	}
	add := func(name string, color vt.Color) {
		if color != vt.ColorDefault {
			all = append(all, name+" "+colorText(color))
		}
	}
	add("fg", c.Style.FG)
	add("bg", c.Style.BG)
	if c.Style.Underline != vt.NoUnderline {
		all = append(all, "underline "+underlines[c.Style.Underline])
	}
	add("underline_color", c.Style.UnderlineColor)
	if c.Link != "" {
		all = append(all, "link "+quote(c.Link))
	}
	return strings.Join(all, " ")
}

// Run checks the scenario file on the cassette in dir, as a test: each assertion that does not pass is an error of t. Where dir is
// "" it is the cassette that the scenario names.
func Run(t TB, dir, scenario string) {
	t.Helper()
	s, err := Load(scenario)
	if err != nil {
		t.Fatalf("scenario: %v", err)
		return
	}
	r, err := s.Check(context.Background(), &Options{Cassette: dir})
	if err != nil {
		t.Fatalf("scenario: %v", err)
		return
	}
	for i := range r.Assertions {
		if o := &r.Assertions[i]; o.Status != Passed {
			t.Errorf("%s", o.Text(filepath.ToSlash(scenario)))
		}
	}
}
