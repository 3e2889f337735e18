package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/meant"
	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
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

// Bounds of a scenario file.
const (
	maxScenario = 4 << 20 // bytes
	maxKeys     = 16      // of a list of names in a message
)

// A reading is one scenario file while it is read.
type reading struct {
	file string
	errs []*SyntaxError
}

func (r *reading) errorf(at plainyaml.Place, format string, args ...any) {
	r.errs = append(r.errs, &SyntaxError{File: r.file, Line: at.Line, Column: at.Column, Problem: fmt.Sprintf(format, args...)})
}

// tree reads YAML, of which JSON is a part. It returns nil where it has added an error.
func (r *reading) tree(b []byte) *plainyaml.Node {
	n, err := plainyaml.Parse(b, maxScenario)
	var wrong *plainyaml.Error
	switch {
	case errors.As(err, &wrong):
		r.errorf(wrong.Place, "%s", wrong.Problem)
	case n == nil:
		r.errorf(plainyaml.Place{Line: 1, Column: 1}, "expected a scenario, got an empty file; begin with: version: 1")
	}
	return n
}

var patterns sync.Map // text → *regexp.Regexp

// pattern compiles one of this package's own expressions, once.
func pattern(s string) *regexp.Regexp {
	if re, ok := patterns.Load(s); ok {
		return re.(*regexp.Regexp)
	}
	re, _ := patterns.LoadOrStore(s, regexp.MustCompile(s))
	return re.(*regexp.Regexp)
}

// maxQuoted is how much of a text a message shows, in bytes.
const maxQuoted = 200

// quote returns s in quotation marks, its control characters as escapes, shortened.
func quote(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return `"` + strings.ReplaceAll(visible.Line(s), `"`, `\"`) + `"`
}

func quotedList(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = quote(s)
	}
	return strings.Join(out, ", ")
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orTop(path string) string {
	if path == "" {
		return "scenario"
	}
	return path
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " and ")
}

// unknownHint names what an unknown key may have been meant for.
func unknownHint(key string, names []string) string {
	if hint := didYouMean(key, names); hint != "" {
		return hint
	}
	if len(names) > maxKeys {
		return "; there are " + strings.Join(names[:maxKeys], ", ") + " and more"
	}
	return "; there are " + strings.Join(names, ", ")
}

// didYouMean returns "; did you mean …?" with the name that is nearest to word, or "" where none is near.
func didYouMean(word string, names []string) string {
	if best := meant.By(word, names); best != "" {
		return "; did you mean " + quote(best) + "?"
	}
	return ""
}

// sensible refuses what its shape allows and what can never be so.
func (r *reading) sensible(a *assertion) {
	family := a.family()
	n, path := a.node.Field(family), a.path+"."+family
	for _, key := range []string{"eventually", "never", "always", "between"} {
		var s span
		if w := n.Field(key); w != nil {
			r.decode(w, &s)
			if s.To >= 0 && s.To < s.From {
				r.errorf(w.Place, "%s: expected an end after the beginning (%s), got %s", path+"."+key, s.From, s.To)
			}
		}
	}
	r.between(n.Field("delay"), path+".delay")
	r.between(n.Field("total"), path+".total")
	if c := n.Field("count"); c != nil && c.Kind == plainyaml.Object && a.Service.Count.Max >= 0 && a.Service.Count.Max < a.Service.Count.Min {
		r.errorf(c.Place, "%s.count: expected max to be at least min (%d), got %d", path, a.Service.Count.Min, a.Service.Count.Max)
	}
	r.possible(a, n, path)
}

// possible refuses an assertion that no cassette meets.
func (r *reading) possible(a *assertion, n *plainyaml.Node, path string) {
	switch {
	case a.Frame != nil && a.Frame.Contains != "" && strings.Trim(a.Frame.Contains, " \n") == "":
		r.errorf(n.Field("contains").Place, "%s.contains: expected a text that shows, got blanks alone, which every screen has", path)
	case a.Frame != nil && a.Frame.Region != nil && a.Frame.Equals != nil && len(*a.Frame.Equals) > a.Frame.Region.Rows:
		r.errorf(n.Field("equals").Place, "%s.equals: expected at most the %d rows of the region, got %d", path, a.Frame.Region.Rows, len(*a.Frame.Equals))
	case a.Frame != nil && a.Frame.Row != nil && a.Frame.Equals != nil && len(*a.Frame.Equals) > 1:
		r.errorf(n.Field("equals").Place, "%s.equals: expected one row, got %d", path, len(*a.Frame.Equals))
	case a.Timing != nil && hasTwice(a.Timing.Order):
		r.errorf(n.Field("order").Place, "%s.order: expected different texts, got one twice", path)
	case a.Process != nil && a.Process.ExitCode != nil && a.Process.Signal != nil && *a.Process.Signal != "none" && *a.Process.ExitCode >= 0:
		r.errorf(n.Place, "%s: a program that a signal ends has no exit code; leave one out", path)
	}
}

func hasTwice(all []string) bool {
	sorted := slices.Sorted(slices.Values(all))
	return len(slices.Compact(sorted)) < len(all)
}

// between refuses a greatest time below the least one.
func (r *reading) between(n *plainyaml.Node, path string) {
	if n == nil || n.Field("min") == nil || n.Field("max") == nil {
		return
	}
	var b bounds
	r.decode(n, &b)
	if *b.Max < *b.Min {
		r.errorf(n.Place, "%s: expected max to be at least min (%s), got %s", path, time.Duration(*b.Min), time.Duration(*b.Max))
	}
}
