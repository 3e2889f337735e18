package runview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// focus draws the turn that is looked at in so many rows: a rule with its name, what was asked, what came.
func (p *picture) focus(t *Turn, rows int) {
	if rows < 2 {
		return
	}
	s := signs[t.Mark]
	r := p.row().put(dim, "── ").put(bold, fmt.Sprintf("%d %s", t.Index, t.verb())).put(plain, " ")
	if t.Label != "" {
		r.put(s.style, s.sign+" "+t.Label).put(plain, " ")
	}
	p.add(r.put(dim, strings.Repeat("─", max(0, r.left()))))
	rows--
	asked, came := t.asked(), t.came()
	width := p.nameWidth(slices.Concat(asked, came))
	room := rows
	if len(came) > 0 { // at least half is for what came of it, if it has that much to say
		room = max(rows-p.height(came, width, rows), rows/2)
	}
	rows -= p.fields(asked, width, room, plain)
	style := plain
	if t.Mark == Rejected {
		style = refused
	}
	p.fields(came, width, rows, style)
}

// asked is what the turn was given.
func (t *Turn) asked() []Field {
	var out []Field
	if t.Prompt != "" {
		out = append(out, Field{Name: "prompt", Text: t.Prompt, Len: len(t.Prompt)})
	}
	for _, f := range t.Params {
		if f.Name != "prompt" || f.Text != t.Prompt { // said already
			out = append(out, f)
		}
	}
	return out
}

// came is what came of the turn, under names that show it.
func (t *Turn) came() []Field {
	if t.Mark == Rejected {
		return []Field{{Name: "→ denied", Text: t.denial(), Len: len(t.denial())}}
	}
	out := make([]Field, 0, len(t.Output)+1)
	for _, f := range t.Output {
		f.Name = strings.TrimSuffix("→ "+f.Name, " ")
		out = append(out, f)
	}
	if t.Error != nil {
		f := *t.Error
		f.Name = "→ " + f.Name
		out = append(out, f)
	}
	return out
}

// nameWidth is how wide the names of fields stand.
func (p *picture) nameWidth(fields []Field) int {
	widest := 0
	for _, f := range fields {
		widest = max(widest, vt.StringWidth(visible.Line(f.Name)))
	}
	return min(widest, max(4, p.Cols/5))
}

// height is how many rows fields take, at most most.
func (p *picture) height(fields []Field, width, most int) int {
	n := 0
	for _, f := range fields {
		lines, _ := wrap(f.Text, p.Cols-width-4, most)
		n += max(1, len(lines))
		if n >= most {
			return most
		}
	}
	return n
}

// fields draws names and texts in at most rows rows and returns how many they took. Each has its row before any has two.
func (p *picture) fields(fields []Field, width, rows int, s style) (used int) {
	for i, f := range fields {
		if used == rows {
			return used
		}
		behind := len(fields) - i - 1
		if used+1 == rows && behind > 0 {
			p.add(p.row().put(dim, fmt.Sprintf("  %s %d more", ellipsis, behind+1)))
			return rows
		}
		used += p.field(f, width, max(1, rows-used-behind), s)
	}
	return used
}

// field draws one field in at most rows rows.
func (p *picture) field(f Field, width, rows int, s style) int {
	lines, left := wrap(f.Text, p.Cols-width-4, rows)
	if len(lines) == 0 {
		lines = []string{""}
	}
	more := ""
	switch {
	case f.Len > len(f.Text):
		more = fmt.Sprintf(" %s %d bytes", ellipsis, f.Len)
	case left > 0:
		more = fmt.Sprintf(" %s %d more", ellipsis, left)
	}
	for i, line := range lines {
		name := ""
		if i == 0 {
			name = f.Name
		}
		r := p.row().put(plain, "  ").column(dim, name, width).put(plain, "  ")
		if i == len(lines)-1 && more != "" {
			line = fit(line, r.left()-vt.StringWidth(more))
			p.add(r.put(s, line).put(dim, more))
			continue
		}
		p.add(r.put(s, line))
	}
	return len(lines)
}
