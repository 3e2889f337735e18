package scrub

import "slices"

// nameless are the masks whose facts name nothing that tells requests apart: times, of which two may be equal by chance, and
// paths that are the same in all of a run.
var nameless = []string{
	"timestamp", maskDate, "time", maskDuration, "unix-time", maskHome, maskWorkTree, maskTemp,
}

// IDs returns, in order, the values of b that Mask takes out and that name something (a UUID, an id that a provider made
// up, a process, a port, a temporary name), and after them the placeholders that Renumber takes out, each by its digits.
// Two texts that compare as equal, but speak of different things, differ in these. What a disabled or an extra mask stands
// for is none. Nothing is counted as used. A nil Masker knows the placeholders alone.
func (m *Masker) IDs(b []byte) []string {
	var ids []string
	if m != nil {
		p := masking{m: m, b: b, only: func(id, name string) {
			if !slices.Contains(nameless, name) {
				ids = append(ids, id)
			}
		}}
		for i := m.seek(b, 0); i < len(b); {
			i = m.seek(b, p.at(i))
		}
	}
	eachPlaceholder(b, func(_, end int) { ids = append(ids, string(b[end-hexLen:end])) })
	return ids
}
