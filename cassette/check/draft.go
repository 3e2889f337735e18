package check

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Bounds of a first scenario.
const (
	maxDrafted   = 40 // rows of the last screen
	maxFullRows  = 6  // rows of the last full screen
	longestDraft = 400
)

// Draft returns a first scenario, YAML, for the cassette in dir: how the program ended, the terminal's size, each row of the last
// screen, and what the last full screen (vim's, less's) showed. It passes on this cassette; what does not matter is to be taken
// out of it. folder is where the scenario will stand, from which it names the cassette; "" leaves the path out.
func Draft(ctx context.Context, dir, folder string) ([]byte, error) {
	r, err := cassette.Open(dir, nil)
	if err != nil {
		return nil, fmt.Errorf("cassette %s: %w", dir, err)
	}
	defer r.Close()
	d := &drafter{r: r}
	if folder != "" {
		d.path = relative(folder, dir)
	}
	if err := d.look(ctx); err != nil {
		return nil, fmt.Errorf("cassette %s: %w", dir, err)
	}
	d.write()
	b := d.b.Bytes()
	return b, d.prove(ctx, b)
}

func relative(folder, dir string) string {
	from, err := filepath.Abs(folder)
	to, err2 := filepath.Abs(dir)
	if err != nil || err2 != nil {
		return filepath.ToSlash(dir)
	}
	if rel, err := filepath.Rel(from, to); err == nil {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(to)
}

type drafter struct {
	r      *cassette.Reader
	path   string
	b      bytes.Buffer
	view   *view
	end    *ending
	full   []string // rows of the last alternate screen
	masked bool     // a row holds something volatile
}

// look goes through the cassette once.
func (d *drafter) look(ctx context.Context) error {
	m := d.r.Manifest()
	g := newEngine(size{m.Terminal.InitialRows, m.Terminal.InitialCols}, []probe{d}, nil, newMasker(nil))
	end, err := g.read(ctx, d.r)
	if err != nil {
		return err
	}
	g.finish(end)
	d.view, d.end = g.view, end
	return nil
}

// A drafter is a probe that never says anything: it keeps the rows of the last alternate screen that shows something.
func (d *drafter) event(*event, *recent)  {}
func (d *drafter) over() bool             { return false }
func (d *drafter) finish(*ending) verdict { return verdict{} }
func (d *drafter) screen(sh *showing) {
	if rows := trimRows(sh.view.Text()); sh.view.Alt() && len(rows) > 0 {
		d.full = rows
	}
}

func (d *drafter) linef(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *drafter) write() {
	m := d.r.Manifest()
	rows := trimRows(d.view.Text())
	d.linef("# What must be so in this cassette. docs/reference/assertions.md shows what else can be said.")
	d.linef("version: 1")
	d.linef("cassette:")
	if d.path != "" {
		d.linef("  path: %s", yamlText(d.path))
	}
	d.linef("  id: %s", yamlText(m.ID))
	d.linef("  sha256: %s", yamlText(m.ContentDigest.SHA256))
	for _, row := range append(append([]string(nil), rows...), d.full...) {
		d.masked = d.masked || d.mask(row) != row
	}
	if d.masked {
		d.linef("normalise: true")
	}
	d.linef("assertions:")
	d.process()
	d.lastScreen(rows)
	d.fullScreen()
}

func (d *drafter) process() {
	switch p := &d.end.process; {
	case p.signaled:
		d.assert("how the program ends", "process: {signal: "+signalName(p.signal)+"}")
	case p.exited:
		d.assert("how the program ends", sprintf("process: {exit_code: %d}", p.code))
	}
	rows, cols := d.view.Size()
	d.assert("the terminal at the end", sprintf("state: {size: {rows: %d, cols: %d}, alternate_screen: %v, at: end}", rows, cols, d.view.Alt()))
	if t := d.view.Title(); t != "" {
		d.assert("the title at the end", "state: {title: "+yamlText(t)+", at: end}")
	}
}

func (d *drafter) lastScreen(rows []string) {
	if len(rows) == 0 {
		d.assert("the screen at the end is blank", `frame: {equals: "", at: end}`)
	}
	for i, row := range rows {
		if row != "" && i < maxDrafted && len(row) < longestDraft {
			d.assert("", sprintf("frame: {row: %d, equals: %s, at: end}", i, yamlText(d.mask(row))))
		}
	}
}

// fullScreen asserts what the last alternate screen showed, where it is not the last screen.
func (d *drafter) fullScreen() {
	n, had := 0, make(map[string]bool)
	for i, row := range d.full {
		if d.view.Alt() || !says(row) || had[row] || n == maxFullRows || len(row) >= longestDraft {
			continue
		}
		had[row] = true
		name := ""
		if n++; n == 1 {
			name = "what the full screen showed last"
		}
		d.assert(name, sprintf("frame: {row: %d, equals: %s, eventually: true}", i, yamlText(d.mask(row))))
	}
}

// says tells whether a row has more than lines and fillers: a letter or a digit.
func says(row string) bool {
	return strings.ContainsFunc(row, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// mask returns a row as an assertion about this row sees it.
func (d *drafter) mask(row string) string { return string(d.view.masks.Mask([]byte(row))) }

func (d *drafter) assert(name, text string) {
	if name == "" {
		d.linef("  - %s", text)
		return
	}
	d.linef("  - name: %s\n    %s", name, text)
}

// yamlText writes a text in quotation marks, as YAML and JSON have it.
func yamlText(s string) string {
	b, _ := jsonscan.Marshal(s) // a string always has a form
	return string(b)
}

// prove sees that the scenario passes.
func (d *drafter) prove(ctx context.Context, b []byte) error {
	s, err := Parse("scenario.yaml", b)
	if err != nil {
		return err
	}
	result, err := s.On(ctx, d.r)
	if err != nil || result.Passed {
		return err
	}
	for i := range result.Assertions {
		if o := &result.Assertions[i]; o.Status != Passed {
			return fmt.Errorf("a scenario made of the cassette does not pass on it: %s: %s", o.Source, o.Came)
		}
	}
	return nil
}
