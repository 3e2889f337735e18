package bodies

import (
	"fmt"
	"unicode/utf8"
)

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
