package visible

import (
	"fmt"
	"strings"
)

// Markdown returns s as one line of which Markdown and HTML show every character: what means something to them stands there as an entity,
// and so does what at the begin of a line makes it an item, a rule or code.
func Markdown(s string) string {
	s = Line(s)
	block := opensBlock(s)
	var b strings.Builder
	for i, r := range s {
		if strings.ContainsRune("\\`*_[]<>|&@#~$", r) || i == 0 && block {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// opensBlock reports whether a line may begin something else than a paragraph by a character that stands for itself elsewhere. Numbers do not.
func opensBlock(line string) bool {
	if behind := strings.TrimLeft(line, "0123456789"); behind != line {
		return behind == "." || behind == ")" || strings.HasPrefix(behind, ". ") || strings.HasPrefix(behind, ") ")
	}
	number := len(line) > 1 && line[1] >= '0' && line[1] <= '9'
	return line != "" && strings.IndexByte(" -+=", line[0]) >= 0 && !number
}
