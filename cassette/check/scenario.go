package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// A Scenario is a scenario file that was read and found in order.
type Scenario struct {
	File      string // its name, as messages have it
	Cassette  Binding
	normalise *normalise
	all       []*assertion
}

// Len returns how many assertions s has.
func (s *Scenario) Len() int { return len(s.all) }

// A Binding is the cassette that a scenario is about.
type Binding struct {
	Path   string `json:"path,omitempty"` // from the scenario's folder; "" where the caller names one
	ID     string `json:"id"`
	SHA256 string `json:"sha256"`
	// Emulator is the screen model that the cassette's frames must come from; nil does not ask. Assertions always see screens
	// of this build's model.
	Emulator *cassette.Emulator `json:"emulator,omitempty"`
}

// A SyntaxError is something in a scenario file that is not as it must be.
type SyntaxError struct {
	File         string
	Line, Column int // from 1; the column in characters
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// maxErrors is how many errors of one file are told.
const maxErrors = 20

// Load reads the scenario file at path: see Parse.
func Load(path string) (*Scenario, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, b)
}

// Parse reads a scenario, YAML or JSON; file is its name in messages. What is wrong comes all at once: the error joins a
// *SyntaxError for each, in the order of the file, 20 at most.
func Parse(file string, b []byte) (*Scenario, error) {
	r := &reading{file: filepath.ToSlash(file)}
	root := r.tree(b)
	if root == nil || len(r.errs) > 0 || !r.fits(root, scenarioShape(), "") {
		return nil, r.err()
	}
	s := &Scenario{File: r.file}
	r.fill(s, root, strings.Split(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n"))
	if err := r.err(); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *reading) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	sortByPlace(r.errs)
	var all []error
	for i, e := range r.errs {
		if i == maxErrors {
			all = append(all, fmt.Errorf("%s: %d more errors", r.file, len(r.errs)-i))
			break
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

// fill makes s of a tree that fits the scenario's shape.
func (r *reading) fill(s *Scenario, root *plainyaml.Node, lines []string) {
	r.decode(root.Field("cassette"), &s.Cassette)
	if n := root.Field("normalise"); n != nil {
		r.decode(n, &s.normalise)
		r.masks(s.normalise, n)
	}
	items := root.Field("assertions").Items
	for i, n := range items {
		a := &assertion{node: n, path: "assertions" + index(i)}
		r.decode(n, a)
		end := len(lines)
		if i+1 < len(items) {
			end = items[i+1].Line - 1
		}
		a.source = sourceOf(lines, n.Place, end)
		r.sensible(a)
		s.all = append(s.all, a)
	}
}

// decode fills v, whose fields are those of the shape that n fits.
func (r *reading) decode(n *plainyaml.Node, v any) {
	if err := json.Unmarshal(n.AppendJSON(nil), v); err != nil {
		r.errorf(n.Place, "%v", err)
	}
}

// What a failure shows of an assertion: lines, and bytes of each.
const (
	maxSource     = 20
	maxSourceLine = 400
)

// sourceOf returns the lines of an assertion as they are written, without the indentation that they share and without
// comments and blank lines behind it.
func sourceOf(lines []string, at plainyaml.Place, end int) string {
	if at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	own := append([]string(nil), lines[at.Line-1:max(min(end, len(lines)), at.Line)]...)
	first := min(at.Column-1, len(own[0]))
	own[0] = own[0][first:]
	for i := 1; i < len(own); i++ {
		line := own[i]
		for n := 0; n < first && strings.HasPrefix(line, " "); n++ {
			line = line[1:]
		}
		own[i] = line
	}
	for len(own) > 1 {
		last := strings.TrimSpace(own[len(own)-1])
		if last != "" && last[0] != '#' && last != "]" && last != "]}" {
			break
		}
		own = own[:len(own)-1]
	}
	if len(own) > maxSource {
		own = append(own[:maxSource], "…")
	}
	for i := range own {
		own[i] = shorten(own[i], maxSourceLine)
	}
	return strings.TrimRight(strings.Join(own, "\n"), " \r\n")
}

// A period is a time of a scenario.
type period time.Duration

// UnmarshalJSON reads a number of ms or a text like 1.5s.
func (p *period) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		d, err := time.ParseDuration(s)
		*p = period(d)
		return err
	}
	var ms float64
	err := json.Unmarshal(b, &ms)
	*p = period(ms * float64(time.Millisecond))
	return err
}

func sortByPlace(errs []*SyntaxError) {
	slices.SortStableFunc(errs, func(a, b *SyntaxError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
