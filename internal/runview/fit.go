package runview

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

const ellipsis = "…"

// fit returns as much of text, which must be visible, as goes into cols columns, with an ellipsis where something is left out.
func fit(text string, cols int) string {
	if len(text) <= cols { // no text takes more columns than bytes
		return text
	}
	kept, used := 0, 0 // of what leaves room for the ellipsis
	for at := 0; at < len(text); {
		cluster, w := vt.FirstCluster(text[at:])
		if used+w > cols {
			return text[:kept] + ellipsis[:len(ellipsis)*min(1, max(0, cols))]
		}
		at, used = at+len(cluster), used+w
		if used < cols {
			kept = at
		}
	}
	return text
}

// pad is text in exactly cols columns.
func pad(text string, cols int) string {
	text = fit(text, cols)
	return text + strings.Repeat(" ", max(0, cols-vt.StringWidth(text)))
}

// wrap returns the first rows rows of text, whose lines are broken at cols columns, and how many of its lines were left out.
// Lines are visible; a tab is two spaces.
func wrap(text string, cols, rows int) (out []string, left int) {
	cols = max(cols, 2) // a wide character must fit
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		line = visible.Line(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "  "))
		for first := true; first || line != ""; first = false {
			if len(out) == rows {
				return out, len(lines) - i
			}
			n := columns(line, cols)
			out = append(out, line[:n])
			line = line[n:]
		}
	}
	return out, 0
}

// columns is how many bytes of text go into cols columns.
func columns(text string, cols int) int {
	at := 0
	for used := 0; at < len(text); {
		cluster, w := vt.FirstCluster(text[at:])
		if used+w > cols {
			break
		}
		at, used = at+len(cluster), used+w
	}
	return at
}

// clip is text without what stands behind its first n bytes, cut where a character begins.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}
