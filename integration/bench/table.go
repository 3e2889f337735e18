package main

import (
	"fmt"
	"strings"
)

// markdown is the report as a page.
func (rep *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Performance\n\n")
	b.WriteString("What this project promises about time and memory, and what was measured. Written by `go run\n" +
		"./integration/bench -o docs/performance.md`; do not edit it. A figure is a ratio to a peer measured in the same run\n" +
		"(\"1.2x\"), or stands beside its limit.\n\n")
	if rep.Short {
		b.WriteString("**A short run (`-short`): small sizes, few rounds. It shows that everything runs, not how fast.**\n\n")
	}
	m := rep.Machine
	fmt.Fprintf(&b, "- machine: %s\n- Go: %s\n- commit: %s\n- date: %s\n- command: `%s`\n", m.line(), m.Go, m.Commit, m.Date, rep.Command)
	fmt.Fprintf(&b, "- rows: %s\n", rep.summary())
	for _, g := range rep.Groups {
		fmt.Fprintf(&b, "\n## %s\n\n", g.Title)
		b.WriteString("| row | what is measured | target | measured | |\n|---|---|---|---|---|\n")
		for _, r := range g.Rows {
			b.WriteString(r.line())
		}
		b.WriteString("\nHow:\n\n")
		if g.Note != "" {
			b.WriteString("- " + g.Note + "\n")
		}
		for _, h := range g.hows() {
			b.WriteString(h)
		}
	}
	return b.String()
}

// line is a result as a line of a table.
func (r *result) line() string {
	mark := map[string]string{stateMet: "met", stateMissed: "**missed**", stateFailed: "**failed**"}[r.State]
	measured := cell(r.measured())
	if r.Value != nil {
		measured = "**" + measured + "**"
	}
	if r.Beside != "" {
		measured += " (" + cell(r.Beside) + ")"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.Name, cell(r.What), r.Target, measured, mark)
}

// hows lists how the rows of a group were measured, those of one way together.
func (rs *results) hows() []string {
	var order []string
	names := make(map[string][]string)
	for _, r := range rs.Rows {
		if names[r.How] == nil {
			order = append(order, r.How)
		}
		names[r.How] = append(names[r.How], r.Name)
	}
	var out []string
	for _, how := range order {
		out = append(out, fmt.Sprintf("- %s: %s\n", strings.Join(names[how], ", "), how))
	}
	return out
}

// cell is a text as it may stand in a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
