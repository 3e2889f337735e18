package terminal

import (
	"slices"
	"strings"
)

// environ is the environment that an allowlist makes of have. TERM is term.
func environ(allow []string, term string, have []string) []string {
	var out []string
	add := func(entry string) {
		name, _, _ := strings.Cut(entry, "=")
		out = slices.DeleteFunc(out, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		out = append(out, entry)
	}
	for _, a := range allow {
		given := strings.Contains(a, "=")
		if given {
			add(a)
			continue
		}
		for _, e := range have {
			if a == "*" || strings.HasPrefix(e, a+"=") {
				add(e)
			}
		}
	}
	add("TERM=" + term)
	return out
}
