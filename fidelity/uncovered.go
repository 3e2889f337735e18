package fidelity

import "strings"

// Uncovered says in one line what was not covered; "" for nothing. First and whole comes what is particular to these
// recordings, then what usual has a short form for: what all of them leave out, and no reader looks for twice.
func Uncovered(gaps []string, usual map[string]string) string {
	var own, always []string
	for _, g := range gaps {
		if short, ok := usual[g]; ok {
			always = append(always, short)
		} else {
			own = append(own, g)
		}
	}
	line := strings.Join(own, ", ")
	if len(always) == 0 {
		return line
	}
	if line != "" {
		line += "; and "
	}
	return line + "as always " + strings.Join(always, ", ") + " (tapedeck show REC --coverage)"
}
