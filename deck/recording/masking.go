package recording

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// Masking says which volatile facts are masked beside or without those that tapedeck knows. It stands in recording.json,
// for a replay must mask as its recording did.
type Masking struct {
	Off []string  `json:"off" yaml:"off"`
	Add []OwnMask `json:"add" yaml:"add"`
	// Agents name those whose masks are used beside the ones of every program; nil for those of the command line.
	Agents  []string `json:"agents,omitempty" yaml:"agents"`
	Headers *Headers `json:"headers,omitempty" yaml:"-"` // beside masks in the file
	Rules   int      `json:"rules,omitempty" yaml:"-"`   // version of the masks that tapedeck knows (masks.Rules); none is 1
}

// Headers says which headers of requests compare beside or without those that tapedeck compares by itself.
type Headers struct {
	Ignore  []string `json:"ignore,omitempty" yaml:"ignore"`
	Compare []string `json:"compare,omitempty" yaml:"compare"`
}

// Compares reports whether a header of requests compares. A nil Headers changes nothing.
func (h *Headers) Compares(name string) bool {
	switch {
	case h != nil && fidelity.HeaderIn(h.Ignore, name):
		return false
	case h != nil && fidelity.HeaderIn(h.Compare, name):
		return true
	}
	return !fidelity.HeaderIn(fidelity.TransportHeaders(), name)
}

// ignored lists the headers of requests that do not compare, a * for the rest of a name.
func (h *Headers) ignored() []string {
	out := fidelity.TransportHeaders()
	if h != nil {
		out = slices.DeleteFunc(append(out, h.Ignore...), func(name string) bool {
			return !fidelity.HeaderIn(h.Ignore, name) && fidelity.HeaderIn(h.Compare, name)
		})
	}
	for i := range out {
		out[i] = strings.ToLower(out[i])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OwnMask is a mask of a project's own.
type OwnMask struct {
	Name    string `json:"name" yaml:"name"`
	Pattern string `json:"pattern" yaml:"pattern"`               // RE2
	Drop    bool   `json:"drop,omitempty" yaml:"drop,omitempty"` // the match goes without a trace
}

// MaskingNow returns the masks and headers by which a recording compares now: those of the tapedeck.yaml in config, or its
// own where there is no such file. changed says that its digests were taken under others.
func (m *Manifest) MaskingNow(config string) (now *Masking, changed bool, err error) {
	own, err := ReadConfig(config)
	if err != nil {
		return nil, false, err
	}
	if now = own.Masks; now == nil {
		now = new(Masking)
		if m.Masking != nil {
			*now = *m.Masking
		}
	}
	switch {
	case now.Agents != nil:
	case m.Masking == nil || m.Masking.Rules < masks.Rules:
		now.Agents = agentsBefore
	default:
		now.Agents = m.Masking.Agents
	}
	now.Rules = masks.Rules
	return now, !now.SameAs(m.Masking), nil
}

// SameAs reports whether digests are the same under m and o.
func (m *Masking) SameAs(o *Masking) bool {
	if m == nil || o == nil {
		m, o = cmp.Or(m, new(Masking)), cmp.Or(o, new(Masking))
	}
	return slices.Equal(m.Off, o.Off) && slices.Equal(m.Add, o.Add) && slices.Equal(m.Agents, o.Agents) && max(m.Rules, 1) == max(o.Rules, 1)
}

// OwnHeaders are those of requests that compare or not; nil for what tapedeck knows.
func (m *Masking) OwnHeaders() *Headers {
	if m == nil {
		return nil
	}
	return m.Headers
}

// Masker returns what masks for runs with these roots. A nil Masking is what tapedeck knows, all of it.
func (m *Masking) Masker(r *Roots) (*masks.Masker, error) {
	o, err := m.options(r)
	if err != nil {
		return nil, err
	}
	return masks.New(o), nil
}

func (m *Masking) options(r *Roots) (*masks.Options, error) {
	o := &masks.Options{Home: r.Home, WorkTree: r.Tree, Temp: r.Temp}
	all, err := m.agentMasks()
	if err != nil {
		return nil, err
	}
	if m != nil {
		o.Disabled = slices.DeleteFunc(slices.Clone(m.Off), func(name string) bool {
			return name == maskTelemetry || isAgentMask(name) || slices.ContainsFunc(screenMasks(), func(s screenMask) bool { return s.Name == name })
		})
		all = append(all, m.Add...)
	}
	for _, own := range all {
		re, err := regexp.Compile(own.Pattern)
		if err != nil {
			return nil, fmt.Errorf("mask %q: %w", own.Name, err)
		}
		o.Extra = append(o.Extra, masks.Extra{Name: own.Name, Pattern: re, Drop: own.Drop})
	}
	return o, o.Check()
}

// maskTelemetry was a mask of what side traffic is now. A recording or a project that names it means nothing by it.
const maskTelemetry = "telemetry"

// MaskUse is one mask and how often a recording used it.
type MaskUse struct {
	Name    string `json:"name"`
	What    string `json:"what"`
	Example string `json:"example"`
	Off     bool   `json:"off"`
	Used    int    `json:"used"`
}

// MasksOf lists the masks that a recording of the work tree at tree would use, of which none is used yet, and the headers of requests
// that do not compare there. tree may be "", which has no tapedeck.yaml.
func MasksOf(tree string) (masks []MaskUse, headers []string, err error) {
	own, err := ReadConfig(tree)
	if err != nil {
		return nil, nil, err
	}
	return (&Manifest{Masking: own.Masks}).maskUses(), own.Masks.OwnHeaders().ignored(), nil
}

func (m *Manifest) maskUses() []MaskUse {
	off := make(map[string]bool)
	var own []OwnMask
	if m.Masking != nil {
		own = m.Masking.Add
		for _, name := range m.Masking.Off {
			off[name] = true
		}
	}
	var out []MaskUse
	for _, k := range masks.All() {
		out = append(out, MaskUse{k.Name, k.What, k.Example, off[k.Name], m.Masks[k.Name]})
	}
	out = append(out, MaskUse{Name: fidelity.AnswerIDs, What: "ids and times that a provider makes up for each answer, where two answers " +
		"differ in nothing else: a verdict counts them; always on", Example: `"id":"chatcmpl-9xKf2"`})
	out = append(out, m.screenMaskUses()...)
	for _, a := range agents {
		for _, k := range a.masks {
			if !slices.ContainsFunc(out, func(u MaskUse) bool { return u.Name == k.Name }) {
				out = append(out, MaskUse{k.Name, "of " + a.name + ", where it runs", k.Pattern, off[k.Name], m.Masks[k.Name]})
			}
		}
	}
	for _, k := range own {
		out = append(out, MaskUse{k.Name, "of " + ConfigName, k.Pattern, off[k.Name], m.Masks[k.Name]})
	}
	return out
}

// screenMasks are masks of what stands on screens alone, where programs write for people: elsewhere such a shape may be anything.
var screenMasks = sync.OnceValue(func() []screenMask {
	return []screenMask{
		{masks.Extra{Name: "screen-clock", Pattern: regexp.MustCompile(
			`(?:^|[\s(\[|│•·—])((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?: ?[AaPp][Mm])?)(?:$|[\s)\]|│•·—,.])`)},
			"of screens: a time of day that stands by itself", "Worked • 10:01"},
		{masks.Extra{Name: "screen-elapsed", Pattern: regexp.MustCompile(
			`(?:\(|\b(?:[Ff]or|[Ii]n|[Aa]fter) )((?:[0-9]+h ?)?(?:[0-9]+m ?)?[0-9]+(?:\.[0-9]+)?s)\b`)},
			"of screens: how long something has taken", "Working (3s • esc to interrupt)"},
	}
})

type screenMask struct {
	masks.Extra
	what, example string
}

// ScreenMasker returns what masks the rows of screens. It counts for itself.
func (m *Masking) ScreenMasker(r *Roots) (*masks.Masker, error) {
	own := new(Masking)
	if m != nil {
		*own = *m
	}
	o, err := own.options(r)
	if err != nil {
		return nil, err
	}
	for _, s := range screenMasks() {
		if !slices.Contains(own.Off, s.Name) {
			o.Extra = append(o.Extra, s.Extra)
		}
	}
	return masks.New(o), nil
}

// screenMaskUses lists what is masked on screens alone.
func (m *Manifest) screenMaskUses() (out []MaskUse) {
	for _, s := range screenMasks() {
		off := m.Masking != nil && slices.Contains(m.Masking.Off, s.Name)
		out = append(out, MaskUse{Name: s.Name, What: s.what, Example: s.example, Off: off})
	}
	return append(out, MaskUse{Name: fidelity.AnimationMask, What: "of screens: what moves while nothing is typed or answered, in its " +
		"row; a verdict with --tty counts the rows; always on", Example: "⠋ Working"})
}
