package masks

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// A Fact is what Mask takes out of a text. Two texts that compare as equal, but speak of different things, differ in their facts.
type Fact struct {
	Mask string // its name; "" of a placeholder of a secret
	Text string // as it stands; the digits of a placeholder
	// Names says that it names something: a UUID, an id that a provider made up, a process, a port, a temporary name, a secret.
	// A time does not.
	Names bool
}

var sayings = func() map[string]saying {
	by := make(map[string]saying)
	for i := range builtin {
		by[builtin[i].Name] = builtin[i].says
	}
	return by
}()

// Facts returns, in order, what the built-in masks take out of b, known paths aside, and behind them the placeholders of secrets. Of a
// mask that is disabled there is none. Nothing is counted as used. A nil Masker knows the placeholders alone.
func (m *Masker) Facts(b []byte) []Fact {
	var facts []Fact
	for _, k := range m.builtin(b) {
		if says := sayings[k.Mask]; says != ofPlace {
			facts = append(facts, Fact{Mask: k.Mask, Text: string(b[k.Start:k.End]), Names: says == ofNames})
		}
	}
	placeholders.Each(b, func(_, end int) {
		facts = append(facts, Fact{Text: string(b[end-placeholders.HexLen : end]), Names: true})
	})
	return facts
}

// Rename returns b with other names in the place of those that the built-in masks take out of it: what to returns for one, which
// stays where that is "". Placeholders stay. It returns b itself where nothing changes, and never writes to b.
func (m *Masker) Rename(b []byte, to func(name string) string) []byte {
	var out []byte
	done := 0
	for _, k := range m.builtin(b) {
		was := string(b[k.Start:k.End])
		if sayings[k.Mask] != ofNames {
			continue
		}
		if now := to(was); now != "" && now != was {
			out = append(append(out, b[done:k.Start]...), now...)
			done = k.End
		}
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// IsPath tells whether the mask takes out a path that is the same in all of a run.
func IsPath(mask string) bool { return sayings[mask] == ofPlace }

// IsTime tells whether the mask takes out a point in time.
func IsTime(mask string) bool {
	return mask == maskTimestamp || mask == maskDate || mask == maskTime || mask == maskUnixTime
}

// IsDuration tells whether the mask takes out how long something took.
func IsDuration(mask string) bool { return mask == maskDuration }

// Unrepeatable tells whether the mask takes out what no replay gives again, though it gives time and randomness: how many links a
// directory has, which is now the 1 of an overlay.
func Unrepeatable(mask, now string) bool {
	return mask == maskLinks && strings.TrimSpace(now) == "1"
}
