package check

import (
	"bytes"
	"regexp"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// screenMasks are what is volatile on screens beyond what package scrub masks everywhere: a screen says how long it has been at work,
// and counts what it draws. Those that have a name of scrub's are switched off with it. Each masks its group.
var screenMasks = sync.OnceValue(func() []masks.Extra {
	return []masks.Extra{
		{Name: "duration", Pattern: regexp.MustCompile(
			`\b(\d{1,3}d ?\d{1,2}h(?: ?\d{1,2}m(?: ?\d{1,2}s)?)?|\d{1,4}h ?\d{1,2}m(?: ?\d{1,2}(?:\.\d+)?s)?|\d{1,4}m ?\d{1,2}(?:\.\d+)?s|\d{1,3}(?:\.\d+)?s)\b`)},
		{Name: "socket", Pattern: regexp.MustCompile(`((?:<[a-z-]+>|~|\$[A-Z_]+)?(?:/[\w.@%+<>-]+)+(?:\.sock(?:et)?|/agent\.\d+|\.s\.PGSQL\.\d+))\b`)},
		{Name: "temp-name", Pattern: regexp.MustCompile(`[-_.]tmp([-_.]\w*\d\w*)\b`)},
		{Name: "animation", Pattern: regexp.MustCompile(`(?i)\b(?:frames?|ticks?|spinner|animation)[=:#] ?(\d+)\b`)},
	}
})

// A screenMasker masks what package scrub does, and what is volatile on screens where anything of a text may be.
type screenMasker struct{ always, screens *masks.Masker }

// newMasker returns a masker of the masks that o, which may be nil, asks for.
func newMasker(o *masks.Options) masker {
	all := new(masks.Options)
	if o != nil {
		*all = *o
	}
	always := masks.New(all)
	all.Extra = slices.Concat(screenMasks(), all.Extra)
	return &screenMasker{always, masks.New(all)}
}

func (m *screenMasker) Mask(b []byte) []byte {
	if mayBeVolatile(b) {
		return m.screens.Mask(b)
	}
	return m.always.Mask(b)
}

// mayBeVolatile reports whether one of screenMasks may find anything: to look for each costs more than the rest of a check.
func mayBeVolatile(b []byte) bool {
	for i := 1; i < len(b); i++ {
		switch c, before := b[i], b[i-1]; c {
		case 's', 'm', 'h', 'd':
			if before >= '0' && before <= '9' {
				return true
			}
		case '=', '#', ':':
			if l := before | 0x20; l == 'e' || l == 'k' || l == 's' || l == 'r' || l == 'n' {
				return true
			}
		case 't':
			if before != ' ' && bytes.HasPrefix(b[i:], []byte("tmp")) {
				return true
			}
		case '.':
			if rest := b[i:]; bytes.HasPrefix(rest, []byte(".sock")) || bytes.HasPrefix(rest, []byte(".s.PGSQL")) ||
				bytes.HasSuffix(b[:i], []byte("/agent")) {
				return true
			}
		}
	}
	return false
}

// checkMasks refuses masks that there are not.
func checkMasks(o *masks.Options) error {
	if o == nil {
		return nil
	}
	known := make(map[string]bool)
	for _, m := range masks.All() {
		known[m.Name] = true
	}
	all := *o
	all.Extra = nil
	for _, m := range screenMasks() {
		if !known[m.Name] {
			all.Extra = append(all.Extra, m)
		}
	}
	all.Extra = append(all.Extra, o.Extra...)
	return all.Check()
}
