package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// markdown is the report as a page.
func (rep *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Performance\n\n")
	b.WriteString("What this project promises about time and memory, and what was measured. Written by `go test -v\n" +
		"-timeout 5h ./integration/bench -run TestMeasure -page docs/reference/performance.md`; do not edit it. A figure is a ratio to a peer\n" +
		"measured in the same run (\"1.2x\"), or stands beside its limit. A row that names a commit was measured at that one, on that machine.\n\n")
	if rep.Short {
		b.WriteString("**A short run (`-short`): small sizes, few rounds. It shows that everything runs, not how fast.**\n\n")
	}
	m := rep.Machine
	fmt.Fprintf(&b, "- machine: %s\n- Go: %s\n- commit: %s\n- date: %s\n- command: `%s`\n", m.line(), m.Go, m.Commit, m.Date, rep.Command)
	fmt.Fprintf(&b, "- rows: %s\n", rep.summary())
	for _, g := range rep.Groups {
		fmt.Fprintf(&b, "\n## %s\n\n", g.Title)
		b.WriteString(g.head())
		for _, r := range g.Rows {
			b.WriteString(r.line(g.Peers, m.at()))
		}
		b.WriteString("\nHow:\n\n")
		if g.Note != "" {
			b.WriteString("- " + g.Note + "\n")
		}
		for _, h := range g.hows() {
			b.WriteString(h)
		}
		for _, r := range g.Rows {
			if r.Curve != nil {
				fmt.Fprintf(&b, "\n![%s](%s)\n\n%s, in %s:\n\n%s", r.Name, r.picture(), r.Name, r.Curve.Y, r.Curve.table())
			}
		}
	}
	return b.String()
}

// picture is the name of the file beside the page that shows the row's curve.
func (r *result) picture() string {
	return "performance-" + strings.ReplaceAll(r.Name, "/", "-") + ".svg"
}

// write writes the page, and beside it the pictures of its curves.
func (rep *report) write(path string) error {
	for _, g := range rep.Groups {
		for _, r := range g.Rows {
			if r.Curve == nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), r.picture()), []byte(r.Curve.svg()), 0o644); err != nil {
				return err
			}
		}
	}
	all := make(kept)
	for _, g := range rep.Groups {
		for _, r := range g.Rows {
			if r.At != "" && r.State != stateFailed { // that is nothing to go on with
				all[r.Name] = &r.outcome
			}
		}
	}
	b, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(figuresOf(path), append(b, '\n'), 0o644), os.WriteFile(path, []byte(rep.markdown()), 0o644))
}

// figuresOf is the file beside a page that has its figures, for a run that measures some of its rows.
func figuresOf(page string) string { return strings.TrimSuffix(page, filepath.Ext(page)) + ".json" }

// readKept reads the figures beside a page; none where there is none.
func readKept(page string) (kept, error) {
	b, err := os.ReadFile(figuresOf(page))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all kept
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", figuresOf(page), err)
	}
	return all, nil
}

// head is the head of a group's table.
func (rs *results) head() string {
	columns := append(append([]string{"row", "what is measured", "target", "measured"}, rs.Peers...), "")
	return "| " + strings.TrimRight(strings.Join(columns, " | "), " ") + " |\n" + strings.Repeat("|---", len(columns)) + "|\n"
}

// line is a result as a line of a table that has these peers' columns, in a page of a run at now.
func (r *result) line(peers []string, now string) string {
	mark := map[string]string{stateMet: "met", stateMissed: "**missed**", stateFailed: "**failed**"}[r.State]
	measured := cell(r.measured())
	if r.Value != nil {
		measured = "**" + measured + "**"
	}
	if r.Beside != "" {
		measured += " (" + cell(r.Beside) + ")"
	}
	if r.At != "" && r.At != now {
		measured += " at " + r.At
	}
	for _, name := range peers {
		measured += " | " + r.peer(name)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.Name, cell(r.What), r.Target, measured, mark)
}

// peer is what a peer made of the row; "" where it does not have it.
func (r *result) peer(name string) string {
	for i := range r.Peers {
		if r.Peers[i].Name == name {
			return cell(r.Peers[i].cell())
		}
	}
	return ""
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
