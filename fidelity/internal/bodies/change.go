// Package bodies says where two bodies differ, for a person: JSON by its structure, forms, multipart bodies and event streams by their
// fields, text by lines and words.
package bodies

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Op says what happened to a value.
type Op string

// The operations of a Change.
const (
	Changed Op = "changed"
	Added   Op = "added"
	Removed Op = "removed"
	Moved   Op = "moved" // an element of a list; Was and Now are its old and its new path
	Shown   Op = "shown" // part of a record that one side has alone: Was as recorded, or Now on the replay
)

// A Change is one difference between two bodies.
type Change struct {
	// Path of the value, such as messages[2].content[0].text, counted in the new body where the value was changed or
	// added. Empty for the whole body, "line 3" in a text that is not JSON, "byte 17" in one that is not text.
	Path string `json:"path"`
	// In names the elements on the path: (user), (assistant) "bash". Empty where none has a role, name or type.
	In  string `json:"in,omitempty"`
	Op  Op     `json:"op"`
	Was string `json:"was,omitempty"` // JSON, shortened to the words that differ; empty for Added
	Now string `json:"now,omitempty"` // the same; empty for Removed
	// Line of a text of several lines in which its first difference stands, counted from 1 in the new text; else 0.
	Line int `json:"line,omitempty"`
	// Marks has a ^ below each column in which two rows of a screen differ; empty for what is no row.
	Marks string `json:"marks,omitempty"`
	// Coarse says why this change may hold more than what differs, or why none is listed behind it; empty as a rule.
	Coarse string `json:"coarse,omitempty"`

	// NewText is the longest run of words that is new, whole: what a cause is traced by.
	NewText string `json:"-"`
	// Reordered: two texts of the same words, in another order.
	Reordered bool `json:"-"`
}

// endsIn is what the path of a call begins with that is shown by its last message.
const endsIn = "ends in "

// Heading is the first line of a change as Summary writes it, such as `tools[2] "bash" added`.
func (c *Change) Heading() string {
	head := c.Path
	if head == "" {
		head = "body"
	}
	switch {
	case c.Op == Moved:
		head = c.Was
	case c.Op == Shown && strings.HasPrefix(head, endsIn) && c.Was != "":
		head = "a call that was not made, which " + head
	case c.Op == Shown && strings.HasPrefix(head, endsIn):
		head = "an extra call, which " + head
	}
	if c.In != "" {
		head += " " + c.In
	}
	if c.Line > 0 {
		head += fmt.Sprintf(", line %d", c.Line)
	}
	switch c.Op {
	case Added, Removed:
		head += " " + string(c.Op)
	case Moved:
		head += " moved to " + c.Now
	}
	return head
}

// Summary returns up to limit changes as text, one value a block, and the number of those left out. A limit below 1 stands for all.
func Summary(changes []Change, limit int) string {
	if limit < 1 || limit > len(changes) {
		limit = len(changes)
	}
	var lines []string
	for i := range changes[:limit] {
		lines = append(lines, changes[i].lines()...)
	}
	if left := len(changes) - limit; left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(lines, "\n")
}

// lines shows one change.
func (c *Change) lines() []string {
	out := []string{c.Heading()}
	if c.Was != "" && c.Op != Moved {
		out = append(out, "  - "+c.Was)
	}
	if c.Now != "" && c.Op != Moved {
		out = append(out, "  + "+c.Now)
	}
	if c.Coarse != "" {
		out = append(out, "  ("+c.Coarse+")")
	}
	return out
}

// Preview shows a body that has no counterpart, in one line: of a conversation its last message. The Change has neither Was nor Now, which
// hold what is shown.
func Preview(b []byte) (c Change, shown string) {
	c = Change{Path: "its bytes", Op: Shown}
	start := string(b[:min(len(b), 2*MaxShown)])
	shown = Shorten(start)
	if !utf8.ValidString(start) {
		shown = fmt.Sprintf("%d bytes", len(b))
	}
	src := string(b)
	if n, _, ok := parseTree(src); ok {
		at, last := lastMessage(src, &n)
		shown = shortJSON(src[last.from:last.to])
		if last != &n {
			c.Path, c.In = endsIn+at, nameOf(src, last)
		}
	}
	return c, shown
}

// lastMessage returns the last element of the conversation in a body, and its path; the body itself where there is none.
func lastMessage(src string, n *node) (string, *node) {
	for _, key := range []string{"messages", "contents", "input"} {
		if list := n.member(src, key); list != nil && src[list.from] == '[' && len(list.kids) > 0 {
			return fmt.Sprintf("%s[%d]", key, len(list.kids)-1), &list.kids[len(list.kids)-1]
		}
	}
	return "", n
}
