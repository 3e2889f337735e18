package deck

import (
	"regexp"
	"slices"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// screenMasks are masks of what stands on screens alone, where programs write for people: elsewhere such a shape may be anything.
var screenMasks = []struct {
	masks.Extra
	what, example string
}{
	{masks.Extra{Name: "screen-clock", Pattern: regexp.MustCompile(
		`(?:^|[\s(\[|│•·—])((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?: ?[AaPp][Mm])?)(?:$|[\s)\]|│•·—,.])`)},
		"of screens: a time of day that stands by itself", "Worked • 10:01"},
	{masks.Extra{Name: "screen-elapsed", Pattern: regexp.MustCompile(
		`(?:\(|\b(?:[Ff]or|[Ii]n|[Aa]fter) )((?:[0-9]+h ?)?(?:[0-9]+m ?)?[0-9]+(?:\.[0-9]+)?s)\b`)},
		"of screens: how long something has taken", "Working (3s • esc to interrupt)"},
}

// screenMasker returns what masks the rows of screens. It counts for itself.
func (m *Masking) screenMasker(r *Roots) (*masks.Masker, error) {
	own := new(Masking)
	if m != nil {
		*own = *m
	}
	o, err := own.options(r)
	if err != nil {
		return nil, err
	}
	for _, s := range screenMasks {
		if !slices.Contains(own.Off, s.Name) {
			o.Extra = append(o.Extra, s.Extra)
		}
	}
	return masks.New(o), nil
}

// ofScreens reports whether name is that of a mask of screens alone.
func ofScreens(name string) bool {
	for _, s := range screenMasks {
		if s.Name == name {
			return true
		}
	}
	return false
}

// screenMaskUses lists what is masked on screens alone.
func (m *Manifest) screenMaskUses() (out []MaskUse) {
	for _, s := range screenMasks {
		off := m.Masking != nil && slices.Contains(m.Masking.Off, s.Name)
		out = append(out, MaskUse{Name: s.Name, What: s.what, Example: s.example, Off: off})
	}
	return append(out, MaskUse{Name: fidelity.AnimationMask, What: "of screens: what moves while nothing is typed or answered, in its " +
		"row; a verdict with --tty counts the rows; always on", Example: "⠋ Working"})
}
