//go:build escape

package escape

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/golden"
)

// Marks between which the table lies in the document.
const (
	beginMark = "<!-- tries: written by go generate ./integration/escape from its rows -->\n"
	endMark   = "<!-- end of tries -->"
)

// TestDocs: docs/reference/jail.md has the table.
func TestDocs(t *testing.T) {
	const path = "../../docs/reference/jail.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), beginMark)
	there, after, ok2 := strings.Cut(rest, endMark)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no %q and %q: put them where the table belongs", path, beginMark, endMark)
	case there == markdown():
	case golden.Updating():
		if err := os.WriteFile(path, []byte(before+beginMark+markdown()+endMark+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another table: go generate ./integration/escape", path)
	}
}

// markdown is the table for people: a row a way out.
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
