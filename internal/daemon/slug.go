package daemon

import "strings"

// slug makes of an agent's name what stands behind "name:" in its id: ASCII letters (lower case) and digits, with one hyphen
// for each run of anything else; "" when nothing is left.
func slug(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r < 'a' || r > 'z' {
			if r < '0' || r > '9' {
				gap = b.Len() > 0
				continue
			}
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
