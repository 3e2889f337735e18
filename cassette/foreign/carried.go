package foreign

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// The keys of what this package puts into a manifest's optional.
const (
	// OptionalImport says where an imported cassette comes from: an Origin.
	OptionalImport = "import"
	// OptionalAsciicast holds what the header of an asciicast says and a manifest has no place for.
	OptionalAsciicast = "asciicast"
)

// An Origin is where an imported cassette comes from.
type Origin struct {
	Format  Format       `json:"format"`
	Files   []OriginFile `json:"files"`
	Unknown []string     `json:"unknown,omitempty"` // what the file does not say and was given or assumed: size, term, input, exit
}

// An OriginFile is one file that was read. Its name is without directories.
type OriginFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// carried is what stands under OptionalAsciicast.
type carried struct {
	Title       string            `json:"title,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	TermVersion string            `json:"term_version,omitempty"`
	Theme       *Theme            `json:"theme,omitempty"`
	IdleLimit   float64           `json:"idle_time_limit,omitempty"` // s
	Tags        []string          `json:"tags,omitempty"`
}

// carry is what of h is carried over, without secrets; nil where there is nothing.
func carry(h *Header, o *tty.Options) json.RawMessage {
	clean := func(s string) string {
		out, _ := tty.Text(s, o)
		return out
	}
	c := carried{Title: clean(h.Title), TermVersion: clean(h.TermVersion), Theme: h.Theme.valid(), IdleLimit: h.IdleLimit.Seconds()}
	for _, t := range h.Tags {
		c.Tags = append(c.Tags, clean(t))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Env)) {
		if name == "TERM" { // it has its own place
			continue
		}
		if c.Env == nil {
			c.Env = make(map[string]string)
		}
		c.Env[clean(name)] = secretless(name, h.Env[name], o)
	}
	b, err := json.Marshal(&c)
	if err != nil || string(b) == "{}" {
		return nil
	}
	return b
}

// secretless is the value of a variable; one whose name says so is a secret as a whole.
func secretless(name, value string, o *tty.Options) string {
	const sep = "="
	out, _ := tty.Text(name+sep+value, o)
	if len(out) < len(name)+len(sep) {
		return ""
	}
	return out[len(name)+len(sep):]
}

var (
	colour  = lazyregexp.New(`^#[0-9a-fA-F]{6}$`)
	colours = lazyregexp.New(`^#[0-9a-fA-F]{6}((:#[0-9a-fA-F]{6}){7}|(:#[0-9a-fA-F]{6}){15})$`)
)

// valid is the theme where all its colours are there, else nil.
func (t *Theme) valid() *Theme {
	if t == nil || !colour.MatchString(t.FG) || !colour.MatchString(t.BG) || !colours.MatchString(t.Palette) {
		return nil
	}
	return t
}

// uncarry puts what m carries into h.
func uncarry(h *Header, m *cassette.Manifest) {
	var c carried
	if json.Unmarshal(m.Optional[OptionalAsciicast], &c) != nil {
		return
	}
	h.Title, h.Env, h.TermVersion, h.Theme, h.Tags = c.Title, c.Env, c.TermVersion, c.Theme.valid(), c.Tags
	h.IdleLimit = seconds(c.IdleLimit)
}
