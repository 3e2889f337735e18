// Package redact makes of a recording another one without what a person names: an address, a customer's name, a text.
//
// Goals: nothing of what is named is left anywhere in the new recording, in none of the forms that package scrub knows, or there is no new
// recording. It stands by itself: its digests, its session log and its seal are made anew, and it replays as one does in which a secret
// became known late, for it goes through the same pass (package rescrub). The recording that it is made of is never changed.
//
// Not goals: finding what nobody named; package scrub does that while a recording is made.
//
// A Rule finds texts. First all that a recording holds is looked through by the rules: files, bodies as their encodings have them, strings of
// JSON, and what is percent-encoded, base64 or hex in those. What they find are values, and each value is then replaced wherever it stands,
// also where the rule itself would not find it: in the chunks of a stream, on the terminal. At the end the new recording is looked through by
// both, rules and values.
//
// Placeholders are those of secrets: td_<rule>_<12 hex>. Paths of the program, its directory and its roots stay, for a replay needs them as
// they are: a recording that has a value in one is refused. What is no file of a recording is not taken along.
//
// Ordering: all of it happens in a directory beside the new one's place, whose name is the last step. Whoever is killed before leaves
// nothing there, and what is left beside goes with the next redact.
package redact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// Options say what is taken out and where the new recording goes. Rules and Output are needed.
type Options struct {
	Rules  []Rule
	Output string // its directory, which is not there yet
	DryRun bool   // all is tried, and nothing is left
	NoSeal bool

	ConfigDir string // where the keys lie; the user's configuration directory when empty
}

// A Result is what was taken out.
type Result struct {
	Of     string           `json:"of"` // id
	ID     string           `json:"id"`
	Path   string           `json:"path"` // "" for a dry run
	Values map[string]int   `json:"values"`
	Places []Place          `json:"places"`
	Sealed *sealing.Sealing `json:"sealed"`
}

// A Place is where something was taken out: records of a kind, files of the work tree, variables.
type Place struct {
	What  string `json:"what"`
	Count int    `json:"count"`
}

// Run makes the recording. The error wraps ErrNothing where there is nothing to take out, and is a *ShortError or a *LeftError where it
// cannot be.
func Run(ctx context.Context, rec *recording.Recording, o *Options) (*Result, error) {
	if !rec.Finished() {
		return nil, fmt.Errorf("%s is unfinished: wait for its end, or record it again", rec.Dir)
	}
	if recording.Exists(o.Output) && !o.DryRun {
		return nil, fmt.Errorf("%s is there already", o.Output)
	}
	key, err := recording.LoadKey(o.ConfigDir)
	if err != nil {
		return nil, err
	}
	values, err := collect(ctx, rec, o.Rules)
	if err != nil {
		return nil, err
	}
	find, err := values.finder(key)
	if err != nil {
		return nil, err
	}
	made, done, err := library.Beside(o.Output)
	if err != nil {
		return nil, err
	}
	defer done()
	c := &copying{o: o, from: rec, find: find, values: values, result: &Result{Of: rec.Manifest.ID, Values: values.count()}}
	if err := c.make(ctx, made); err != nil {
		return nil, err
	}
	if o.DryRun {
		return c.result, nil
	}
	c.result.Path = o.Output
	return c.result, os.Rename(made, o.Output)
}

// values are the texts that are taken out, each with the name of the rule that found it first.
type values map[string]string

// maxValues bounds how many different ones there may be: a rule that finds more finds something else than was meant.
const maxValues = 20_000

// collect looks through a recording by rules.
func collect(ctx context.Context, rec *recording.Recording, rules []Rule) (values, error) {
	all := make(values)
	err := eachContent(ctx, rec, func(_ string, b []byte) error {
		u := &unfolding{do: func(text []byte) {
			for _, r := range rules {
				r.find(text, func(v []byte) { all.add(r.Name, v) })
			}
		}}
		u.content(b, maxDepth)
		if len(all) > maxValues {
			return fmt.Errorf("the rules find more than %d different texts: let them match less", maxValues)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", rec.Dir, ErrNothing)
	}
	return all, err
}

func (v values) add(rule string, value []byte) {
	if _, ok := v[string(value)]; !ok {
		v[string(value)] = rule
	}
}

// finder returns what finds them, and nothing else.
func (v values) finder(key scrub.Key) (*scrub.Scrubber, error) {
	s := scrub.New(key, nil)
	begun := s.Mark()
	for _, value := range slices.Sorted(maps.Keys(v)) {
		if !s.AddExact(v[value], value) {
			return nil, &ShortError{v[value], value, scrub.MinExact}
		}
	}
	return s.Since(begun), nil
}

// count is how many different ones each rule found.
func (v values) count() map[string]int {
	out := make(map[string]int)
	for _, rule := range v {
		out[rule]++
	}
	return out
}

// look returns where in a recording something of it is left.
func (c *copying) look(ctx context.Context, rec *recording.Recording) error {
	var places []string
	err := eachContent(ctx, rec, func(place string, b []byte) error {
		_, found := c.find.Bytes(b)
		u := &unfolding{do: func(text []byte) {
			for _, r := range c.o.Rules {
				r.find(text, func([]byte) { found = true })
			}
			_, is := c.find.Bytes(text)
			found = found || is
		}}
		u.content(b, maxDepth)
		if found && !slices.Contains(places, place) {
			places = append(places, place)
		}
		return nil
	})
	if err == nil && len(places) > 0 {
		err = &LeftError{places}
	}
	return err
}

// finish looks through the new recording once more and seals it.
func (c *copying) finish(ctx context.Context, rec *recording.Recording) error {
	if err := c.look(ctx, rec); err != nil {
		return err
	}
	v, err := verify.Verify(ctx, rec.Dir, &verify.Options{ConfigDir: c.o.ConfigDir})
	if err != nil {
		return err
	}
	if len(v.Problems) > 0 {
		return fmt.Errorf("what would be left is no sound recording: %v", v.Problems[0])
	}
	if c.o.NoSeal || c.o.DryRun {
		return nil
	}
	c.result.Sealed, err = sealing.Seal(ctx, rec, &sealing.Options{ConfigDir: c.o.ConfigDir})
	return err
}

// newManifest is that of the new recording, before anything is taken out of it.
func (c *copying) newManifest() (*recording.Manifest, error) {
	m, err := recording.ReadManifest(c.from.Dir)
	if err != nil {
		return nil, err
	}
	rules := slices.Sorted(maps.Keys(c.values.count()))
	m.Seed, m.ID, m.Sealed, m.State = m.SeededBy(), recording.NewID(time.Now()), false, recording.StateRecording
	m.Redacted = &recording.Redacted{Of: c.from.Manifest.ID, Rules: rules}
	c.result.ID = m.ID
	return m, nil
}

// What kept a recording from being made.
var (
	errPaths  = errors.New("what is to be taken out stands in it, and a replay needs it as it is: let the rules match less, or record it again elsewhere")
	errBroken = errors.New("nothing was made: where a rule finds what a recording is made of (digests, times, numbers), let it match less")
)

// A Rule finds what is to be taken out. Its name stands in placeholders, and in the new recording.
type Rule struct {
	Name string
	find func(text []byte, found func(value []byte))
}

// Match is a rule that finds what an expression matches (syntax of Go's regexp, RE2).
func Match(expr string) (Rule, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return Rule{}, err
	}
	if re.MatchString("") {
		return Rule{}, fmt.Errorf("%q matches nothing at all too: it must match a text", expr)
	}
	return Rule{"match", func(text []byte, found func([]byte)) {
		for _, m := range re.FindAllIndex(text, -1) {
			found(text[m[0]:m[1]])
		}
	}}, nil
}

// Email is the rule that finds addresses of email.
func Email() Rule {
	return Rule{"email", func(text []byte, found func([]byte)) {
		tty.EachEmail(text, func(start, end int) { found(text[start:end]) })
	}}
}

// maxValuesFile bounds, in bytes, a file of values.
const maxValuesFile = 16 << 20

// ValuesFrom is a rule that finds the lines of a file, each as it stands.
func ValuesFrom(file string) (Rule, error) {
	b, err := recording.ReadBounded(file, maxValuesFile)
	if err != nil {
		return Rule{}, err
	}
	var values [][]byte
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, maxValuesFile)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			values = append(values, bytes.Clone(line))
		}
	}
	if len(values) == 0 {
		return Rule{}, errors.Join(lines.Err(), fmt.Errorf("%s: no line with a value in it", file))
	}
	return Rule{"value", func(text []byte, found func([]byte)) {
		for _, v := range values {
			if bytes.Contains(text, v) {
				found(v)
			}
		}
	}}, lines.Err()
}

// A ShortError says that a value cannot be taken out: it would be found within other words.
type ShortError struct {
	Rule  string
	Value string
	Least int // bytes
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("%s finds %q, and what has fewer than %d bytes is not searched for: name more of it, as in a first and a last name",
		e.Rule, e.Value, e.Least)
}

// A LeftError says where a recording without what was named would hold some of it all the same. There is no new recording.
type LeftError struct{ Places []string }

func (e *LeftError) Error() string {
	const shown = 5
	places := e.Places
	more := ""
	if len(places) > shown {
		places, more = places[:shown], fmt.Sprintf(" and %d more", len(e.Places)-shown)
	}
	return "something of it would be left in " + strings.Join(places, ", ") + more +
		": nothing was made; where the rule finds what a recording is made of (digests, times, numbers) let it match less"
}

// ErrNothing says that the rules find nothing in a recording.
var ErrNothing = errors.New("the rules find nothing in it: nothing was made")
