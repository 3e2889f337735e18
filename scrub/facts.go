package scrub

// What a fact that a mask takes out says of the text that it stands in.
type saying uint8

const (
	ofTimes saying = iota // a time, a date, a duration: two of them may be equal by chance
	ofNames               // it names something: two that are equal name the same
	ofPlace               // a path that is the same in all of a run
)

// A Fact is what Mask or Renumber takes out of a text. Two texts that compare as equal, but speak of different things, differ
// in their facts.
type Fact struct {
	Mask string // its name; "" of a placeholder
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

// Facts returns, in order, what the built-in masks take out of b, known paths aside, and behind them the placeholders. Of a
// mask that is disabled there is none. Nothing is counted as used. A nil Masker knows the placeholders alone.
func (m *Masker) Facts(b []byte) []Fact {
	var facts []Fact
	m.eachFact(b, func(start, end int, name string) {
		if says := sayings[name]; says != ofPlace {
			facts = append(facts, Fact{Mask: name, Text: string(b[start:end]), Names: says == ofNames})
		}
	})
	eachPlaceholder(b, func(_, end int) { facts = append(facts, Fact{Text: string(b[end-hexLen : end]), Names: true}) })
	return facts
}

// Rename returns b with other names in the place of those that the built-in masks take out of it: what to returns for one, which
// stays where that is "". Placeholders stay. It returns b itself where nothing changes, and never writes to b.
func (m *Masker) Rename(b []byte, to func(name string) string) []byte {
	var out []byte
	done := 0
	m.eachFact(b, func(start, end int, name string) {
		if sayings[name] != ofNames {
			return
		}
		was := string(b[start:end])
		if now := to(was); now != "" && now != was {
			out = append(append(out, b[done:start]...), now...)
			done = end
		}
	})
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// eachFact calls f with what the built-in masks take out of b, in order. A nil Masker has none.
func (m *Masker) eachFact(b []byte, f func(start, end int, mask string)) {
	if m == nil {
		return
	}
	p := masking{m: m, b: b, only: f}
	for i := m.seek(b, 0); i < len(b); {
		i = m.seek(b, p.at(i))
	}
}
