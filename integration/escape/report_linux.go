package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// report prints a line a row, with what came of it in every run, and returns how many rows are not as the table says.
func report(w io.Writer, found []finding, verbose bool) (bad int) {
	tab := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	tries, rows := 0, 0
	for _, g := range table {
		titled := false
		for i := range g.rows {
			r := &g.rows[i]
			of := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.row != r })
			if len(of) == 0 {
				continue
			}
			if !titled {
				fmt.Fprintf(tab, "\n%s\n", g.title)
				titled = true
			}
			rows++
			tries += len(of)
			verdict, detail := sumUp(of)
			if slices.ContainsFunc(of, func(f finding) bool { return !f.good }) {
				bad++
				verdict = "UNEXPECTED: " + verdict
			}
			fmt.Fprintf(tab, "  %s\t%s\t%s\n", verdict, r.name, detail)
			for _, f := range of {
				if verbose || !f.good {
					fmt.Fprintf(tab, "  \t  %s, %v\t%s: %s\n", f.user, f.mode, f.State, f.Detail)
				}
			}
		}
	}
	tab.Flush()
	fmt.Fprintf(w, "\n%d ways out, %d tries; %d not as docs/security.md says\n", rows, tries, bad)
	return bad
}

// sumUp says in a word what came of a row, and how.
func sumUp(of []finding) (verdict, detail string) {
	var states, details []string
	var outIn []string
	for _, f := range of {
		if !slices.Contains(states, f.State) {
			states = append(states, f.State)
		}
		if f.Detail != "" && !slices.Contains(details, f.Detail) {
			details = append(details, f.Detail)
		}
		if f.State == stateOut && !slices.Contains(outIn, f.mode.String()) {
			outIn = append(outIn, f.mode.String())
		}
	}
	if len(outIn) > 0 {
		return "out (" + strings.Join(outIn, ", ") + ")", strings.Join(details, "; ")
	}
	if slices.Contains(states, stateHeld) {
		return stateHeld, strings.Join(details, "; ")
	}
	return stateNotTried, strings.Join(details, "; ")
}

// Marks between which the table lies in the document.
const (
	beginMark = "<!-- tries: written by go generate ./integration/escape from its rows -->"
	endMark   = "<!-- end of tries -->"
)

// writeDocs puts the table into a document.
func writeDocs(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(data, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no %q and %q: put them where the table belongs", path, beginMark, endMark)
	}
	text := slices.Concat(before, []byte(beginMark+"\n"+markdown()+endMark), after)
	if bytes.Equal(text, data) {
		return nil
	}
	return os.WriteFile(path, text, 0o644)
}

// markdown is the table for people: a row a way out, and the tests that try it are those of this package.
func markdown() string {
	var b strings.Builder
	for _, g := range table {
		fmt.Fprintf(&b, "\n### %s\n\n| way out | what is tried | outcome | how |\n|---|---|---|---|\n", g.title)
		for _, r := range g.rows {
			outcome := "held"
			if r.out != 0 {
				outcome = "**gets out** (" + r.out.String() + ")"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(r.name), cell(r.tried), outcome, cell(r.how))
		}
	}
	b.WriteString("\n")
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
