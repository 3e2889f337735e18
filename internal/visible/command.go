package visible

import "strings"

// Command returns a command line as a shell would take it: arguments that hold more than the characters of plain words stand
// in quotes. It is for people: control characters are left to who writes it, as for any text.
func Command(argv []string) string {
	var b strings.Builder
	for i, arg := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if arg != "" && !strings.ContainsFunc(underRoot(arg), quoted) {
			b.WriteString(arg)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(arg, "'", `'\''`) + "'")
	}
	return b.String()
}

// underRoot is a path without the name of the root that a tape puts before it: ~ or $TMP.
func underRoot(arg string) string {
	for _, root := range []string{"~/", "$TMP/"} {
		if rest, ok := strings.CutPrefix(arg, root); ok {
			return rest
		}
	}
	return arg
}

// quoted reports whether r means something to a shell, or might.
func quoted(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%+=:,./_-", r)
}
