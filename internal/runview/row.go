package runview

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A style is how a text is drawn: the parameters of SGR, "" for plain.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	cyan    style = "36"
	refused style = "1;35"
	broken  style = "1;31"
	focused style = "7"
)

// unlimited is for rows of any width.
const unlimited = -1

// A row is one line of at most cols columns.
type row struct {
	b            strings.Builder
	cols, used   int
	colour, full bool
}

func newRow(cols int, colour bool) *row { return &row{cols: cols, colour: colour} }

// put adds text, one line of it whatever it holds, as far as it fits.
func (r *row) put(s style, text string) *row {
	if r.full || text == "" {
		return r
	}
	text = visible.Line(text)
	if r.cols != unlimited {
		if kept := fit(text, r.cols-r.used); kept != text {
			text, r.full = kept, true
		}
	}
	r.used += vt.StringWidth(text)
	if !r.colour || s == plain || text == "" {
		r.b.WriteString(text)
		return r
	}
	r.b.WriteString("\x1b[" + string(s) + "m" + text + "\x1b[0m") // text holds no other control
	return r
}

// column adds text in exactly cols columns.
func (r *row) column(s style, text string, cols int) *row {
	return r.put(s, pad(visible.Line(text), cols))
}

// left is how many columns are left.
func (r *row) left() int { return r.cols - r.used }

func (r *row) String() string { return r.b.String() }
