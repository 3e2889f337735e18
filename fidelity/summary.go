package fidelity

import (
	"fmt"
	"strings"
)

// Summary returns up to limit changes as text, one value a block, and the number of those left out:
//
//	messages[0].content
//	  - "write hello.txt"
//	  + "write bye.txt"
//	tools[3] added
//	  + {"name":"rm"}
//	and 2 more
//
// A limit below 1 stands for all. The text has no newline at its end and is empty without a change.
func Summary(changes []Change, limit int) string {
	if limit < 1 || limit > len(changes) {
		limit = len(changes)
	}
	var lines []string
	for _, c := range changes[:limit] {
		lines = append(lines, c.lines()...)
	}
	if left := len(changes) - limit; left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(lines, "\n")
}

// lines shows one change.
func (c Change) lines() []string {
	head := c.Path
	if head == "" {
		head = "body"
	}
	if c.Op != Changed {
		head += " " + string(c.Op)
	}
	out := []string{head}
	if c.Op != Added {
		out = append(out, "  - "+c.Was)
	}
	if c.Op != Removed {
		out = append(out, "  + "+c.Now)
	}
	return out
}
