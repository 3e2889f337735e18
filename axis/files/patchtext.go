package files

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// contextLines is how many unchanged lines stand around a change.
const contextLines = 3

// writeHunks writes the hunks that turn old into now. The search for common lines is bounded: where two texts share
// little, a run of lines is replaced as a whole.
func writeHunks(w *bufio.Writer, old, now []byte) {
	if len(old) == 0 || len(now) == 0 { // most of what a run changes: a file that is new, or gone
		writeWhole(w, old, now)
		return
	}
	a, b := splitLines(string(old)), splitLines(string(now))
	diffs := lcs.DiffLines(a, b)
	for len(diffs) > 0 {
		n := 1
		for n < len(diffs) && diffs[n].Start-diffs[n-1].End <= 2*contextLines {
			n++
		}
		writeHunk(w, a, b, diffs[:n])
		diffs = diffs[n:]
	}
}

// writeWhole writes the one hunk of two texts of which one is empty.
func writeWhole(w *bufio.Writer, old, now []byte) {
	fmt.Fprintf(w, "@@ -%s +%s @@\n", hunkRange(0, countLines(old)), hunkRange(0, countLines(now)))
	writeAll(w, '-', old)
	writeAll(w, '+', now)
}

// writeAll is writeLine of each line of b.
func writeAll(w *bufio.Writer, mark byte, b []byte) {
	for line := range bytes.Lines(b) {
		w.WriteByte(mark)
		w.Write(line)
	}
	if len(b) > 0 && b[len(b)-1] != '\n' {
		w.WriteString(noNewline)
	}
}

// countLines counts the lines of b, of which the last may lack its newline.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// writeHunk writes one hunk: neighbouring differences and the lines around and between them.
func writeHunk(w *bufio.Writer, a, b []string, diffs []lcs.Diff) {
	first, last := diffs[0], diffs[len(diffs)-1]
	lead := min(contextLines, first.Start)
	tail := min(contextLines, len(a)-last.End)
	aFrom, aTo := first.Start-lead, last.End+tail
	bFrom, bTo := first.ReplStart-lead, last.ReplEnd+tail
	fmt.Fprintf(w, "@@ -%s +%s @@\n", hunkRange(aFrom, aTo), hunkRange(bFrom, bTo))
	at := aFrom
	for _, d := range diffs {
		writeLines(w, ' ', a[at:d.Start])
		writeLines(w, '-', a[d.Start:d.End])
		writeLines(w, '+', b[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	writeLines(w, ' ', a[at:aTo])
}

// hunkRange returns "line,count" of the lines from (from 0) to to; an empty range names the line before it.
func hunkRange(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprintf("%d", from+1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

func writeLines(w *bufio.Writer, mark byte, lines []string) {
	for _, l := range lines {
		writeLine(w, mark, l)
	}
}

// noNewline ends a last line that has no newline.
const noNewline = "\n\\ No newline at end of file\n"

func writeLine(w *bufio.Writer, mark byte, line string) {
	w.WriteByte(mark)
	w.WriteString(line)
	if !strings.HasSuffix(line, "\n") {
		w.WriteString(noNewline)
	}
}

// splitLines returns the lines of s, each with its newline but perhaps the last.
func splitLines(s string) []string {
	out := make([]string, 0, strings.Count(s, "\n")+1)
	for l := range strings.Lines(s) {
		out = append(out, l)
	}
	return out
}
