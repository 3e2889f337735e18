package gate

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// Annotate writes a line for a result that does not hold as a workflow command of GitHub's, which shows it beside the file.
func (r *Result) Annotate(w io.Writer, strict bool) error {
	if r.Status == Faithful || r.Status == Skipped {
		return nil
	}
	word := map[string]string{"error": "error", "warning": "warning", "note": "notice"}[r.level(strict)]
	_, err := fmt.Fprintf(w, "::%s file=%s,title=%s::%s\n", word, commandProperty(filepath.ToSlash(r.Path)),
		commandProperty(r.Name+": "+string(r.Status)), commandData(r.Text()))
	return err
}

// commandData and commandProperty write a text as workflow commands want it.
func commandData(s string) string {
	return strings.NewReplacer("%", "%25", "\n", "%0A").Replace(visible.Text(s))
}

func commandProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandData(s))
}

// WriteMarkdown writes the results as GitHub's step summary shows them: a table, and what does not hold below it.
func (s *Summary) WriteMarkdown(w io.Writer, strict bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### tapedeck test: %s\n\n| | recording | time | verdict |\n|---|---|---|---|\n", s)
	for _, r := range s.Results {
		fmt.Fprintf(&b, "| %s | <code>%s</code> | %.1f s | %s |\n", r.sign(strict), cell(r.Name), r.Took.Seconds(), cell(r.Why))
	}
	for _, r := range s.Results {
		if r.First != "" && r.Status.Exit(strict) != 0 {
			fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", visible.Markdown(r.Name), fenced(visible.Text(r.First)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) sign(strict bool) string {
	switch {
	case r.Status.Exit(strict) != 0:
		return "❌ " + string(r.Status)
	case r.Status == Faithful:
		return "✅"
	}
	return "⚠️ " + string(r.Status)
}

// cell is a text within a table: nothing in it is Markdown or HTML.
func cell(s string) string { return visible.Markdown(strings.ReplaceAll(s, "\n", " ")) }

// fenced is a text as it stands, in a fence that it does not hold.
func fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "text\n" + s + "\n" + fence
}

// String counts results: "30 tried: 28 faithful, 2 diverged".
func (s *Summary) String() string {
	var parts []string
	for _, status := range []Status{Faithful, Unsure, Expected, Diverged, Hangs, Damaged, Newer, NoProgram, NoJail, Broken, Skipped} {
		if n := s.Count(status); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if s.Left > 0 {
		parts = append(parts, fmt.Sprintf("%d not tried", s.Left))
	}
	return fmt.Sprintf("%d tried: %s", len(s.Results)-s.Count(Skipped), strings.Join(parts, ", "))
}
