package tty_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// leaks derives the screens of a stream and tells where a secret can be read, "" for nowhere: in the raw bytes, in the text without
// sequences, in any row or in rows put together, at any time. It shares no code with what masks but the screen model.
func leaks(raw []byte, parts []string) string {
	has := func(where, text string) string {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return fmt.Sprintf("%s: %q has %q", where, text, p)
			}
		}
		return ""
	}
	if at := has("raw", string(raw)); at != "" {
		return at
	}
	var text strings.Builder
	x := vt.NewLexer(func(t *vt.Token) {
		if t.Kind == vt.TokenText {
			text.Write(t.Data)
		}
	})
	_, _ = x.Write(raw)
	if at := has("stripped", text.String()); at != "" {
		return at
	}
	s := vt.New(&vt.Options{Rows: rows, Cols: cols, Scrollback: 10000})
	gen := uint64(0)
	for i := 0; i < len(raw); {
		n := 1
		for i+n < len(raw) && raw[i+n] >= ' ' && raw[i+n-1] >= ' ' { // text comes at once
			n++
		}
		_, _ = s.Write(raw[i : i+n])
		i += n
		if s.Generation() == gen {
			continue
		}
		gen = s.Generation()
		if at := has(fmt.Sprintf("screen at %d", i), strings.Join(s.Text(), "\n")); at != "" {
			return at
		}
		if at := has(fmt.Sprintf("joined screen at %d", i), strings.Join(s.Text(), "")); at != "" {
			return at
		}
		if at := has(fmt.Sprintf("screen without blanks and borders at %d", i), bare(s)); at != "" {
			return at
		}
	}
	var above bytes.Buffer
	for i := range s.ScrollbackLen() {
		above.WriteString(s.ScrollbackRow(i))
	}
	return has("scrollback", above.String())
}

// bare is what stands on the screen but for blanks and borders.
func bare(s *vt.Screen) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" |│║", r) {
			return -1
		}
		return r
	}, strings.Join(s.Text(), ""))
}

// layout is where everything stands on the screen: the widths of the cells, the cursor, what goes on in the next row.
func layout(raw []byte) string {
	s := vt.New(&vt.Options{Rows: rows, Cols: cols})
	_, _ = s.Write(raw)
	b := fmt.Appendf(nil, "%v %t %d ", s.Cursor(), s.Alt(), s.ScrollbackLen())
	var cells []vt.Cell
	for y := range rows {
		cells = s.AppendCells(cells[:0], y)
		for _, c := range cells {
			blank := byte('x')
			if c.Text == "" {
				blank = ' '
			}
			b = append(b, '0'+byte(c.Width), blank, byte(c.Style.Attr), byte(c.Style.FG))
		}
		b = fmt.Append(b, s.Wrapped(y))
	}
	return string(b)
}
