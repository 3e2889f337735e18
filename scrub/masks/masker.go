// Package masks takes volatile facts out of what is compared. A Masker replaces UUIDs, times, temporary names, HOME and the like by the
// names of their masks, each a shape in a place, and counts them, so that a match never hides one. What it returns it does not change
// again. docs/masking.md says all of it for people.
//
// Two texts that are equal but for masks may speak of different things: Facts and Trace say what was taken out, and MomentOf
// and Milliseconds what it says.
//
// Cost. A text is looked at once, and a filter of three bytes lets most places pass by.
package masks

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// Options are what New takes. A nil *Options is the zero Options.
type Options struct {
	// Home, WorkTree and Temp are the absolute paths that <home>, <worktree> and <temp> stand for; none where empty or "/".
	// Of two that contain each other the longer is taken where both fit.
	Home, WorkTree, Temp string
	// Moved is where the work tree was before, or "": <worktree> stands for it too.
	Moved string
	// Disabled names the masks that are not used.
	Disabled []string
	// Extra are a project's own masks, used after the built-in ones, in this order.
	Extra []Extra
}

// An Extra is a project's own mask: each match of Pattern becomes <Name>, or where it has a group, the first group
// of each match does. An empty group is left alone.
//
// With Drop the match goes without a trace, as a line must that a program prints in one run and not in the next; the mask
// is counted all the same.
type Extra struct {
	Name    string
	Pattern *regexp.Regexp
	Drop    bool
}

// Rules is the version of the masks that a recording is made with now.
const Rules = 3

var maskName = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,31}$`)

// Check reports what is wrong with o: a disabled mask that does not exist, an extra one without a name of lowercase
// letters, digits and hyphens, with a name that is taken, or without a pattern. New ignores such entries.
func (o *Options) Check() error {
	names := make(map[string]bool)
	for _, info := range All() {
		names[info.Name] = true
	}
	for i, e := range o.Extra {
		switch {
		case !maskName.MatchString(e.Name):
			return fmt.Errorf("mask %d: the name %q is not made of lowercase letters, digits and hyphens", i+1, e.Name)
		case names[e.Name]:
			return fmt.Errorf("mask %q: the name is taken", e.Name)
		case e.Pattern == nil:
			return fmt.Errorf("mask %q has no pattern", e.Name)
		}
		names[e.Name] = true
	}
	for _, name := range o.Disabled {
		if !names[name] {
			return fmt.Errorf("no mask is named %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
	}
	return nil
}

// A Masker replaces volatile facts by the names of their masks, and counts them. Its methods may be called by several
// goroutines at once.
type Masker struct {
	off   map[string]bool
	paths []knownPath // longest first
	extra []Extra

	begun  sync.Once // guards filter and masks, which are large: many a run has nothing to mask
	filter chars.Filter
	masks  [256][]*mask // by the first byte

	mu   sync.Mutex // guards used
	used map[string]int
}

// A knownPath is a directory that a mask stands for.
type knownPath struct {
	path string
	mask string // "" where the path itself is not volatile
	temp bool   // names below it may be made up
}

// New returns a Masker of the built-in masks that are not disabled, and the extra ones.
func New(o *Options) *Masker {
	if o == nil {
		o = new(Options)
	}
	m := &Masker{off: make(map[string]bool), used: make(map[string]int)}
	for _, name := range o.Disabled {
		m.off[name] = true
	}
	for _, e := range o.Extra {
		if e.Pattern != nil && maskName.MatchString(e.Name) && !m.off[e.Name] {
			m.extra = append(m.extra, e)
		}
	}
	m.addPath(o.WorkTree, maskWorkTree, false)
	m.addPath(o.Moved, maskWorkTree, false)
	m.addPath(o.Home, maskHome, false)
	m.addPath(o.Temp, maskTemp, true)
	for _, p := range []string{"/tmp", "/var/tmp", "$TMP", "<temp>"} {
		m.paths = append(m.paths, knownPath{path: p, temp: true})
	}
	slices.SortStableFunc(m.paths, func(a, b knownPath) int { return len(b.path) - len(a.path) })
	return m
}

// begin makes the built-in masks known by what they begin with.
func (m *Masker) begin() {
	m.filter = chars.NewFilter()
	for i := range builtin {
		m.install(&builtin[i])
	}
}

func (m *Masker) addPath(dir, name string, temp bool) {
	if len(dir) < 2 || !path.IsAbs(dir) {
		return
	}
	if m.off[name] {
		name = ""
	}
	m.paths = append(m.paths, knownPath{path.Clean(dir), name, temp})
}

// install lets through what k can begin with. What stands for paths begins as the known ones do, and looks itself which masks are off.
func (m *Masker) install(k *mask) {
	starts := k.starts
	switch {
	case k.find == nil:
		return
	case k.Name == maskTempName:
		for _, p := range m.paths {
			starts = append(starts, p.path)
		}
	case m.off[k.Name]:
		return
	}
	for i := range len(k.firsts) {
		for second := range 256 {
			if k.seconds == "" || strings.IndexByte(k.seconds, byte(second)) >= 0 {
				m.filter.AllowEvery(k.firsts[i], byte(second))
			}
		}
		m.masks[k.firsts[i]] = append(m.masks[k.firsts[i]], k)
	}
	for _, s := range starts {
		m.filter.AllowText(s)
		if !slices.Contains(m.masks[s[0]], k) {
			m.masks[s[0]] = append(m.masks[s[0]], k)
		}
	}
}

// Mask returns b with each volatile fact replaced by the name of its mask in angle brackets. It returns b itself where
// there is none, and never writes to b. A nil Masker masks nothing.
func (m *Masker) Mask(b []byte) []byte {
	if m == nil {
		return b
	}
	used := make(map[string]int)
	masked, _ := m.apply(b, func(name string) { used[name]++ })
	m.count(used)
	return masked
}

// Used returns how many facts were replaced so far, by the name of the mask.
func (m *Masker) Used() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.used)
}

func (m *Masker) count(used map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range used {
		m.used[name] += n
	}
}

// Digest returns the digest of b by which recordings are compared: of its bytes after scrub.Renumber and Mask.
func (m *Masker) Digest(b []byte) cas.Digest { return cas.Sum(m.Mask(placeholders.Renumber(b, nil))) }

// A Taken is one fact that masks take out of a text, and where.
type Taken struct {
	Mask       string // its name
	Start, End int    // in the text
	At         int    // where its name stands in the masked text
	Own        bool   // by one of Options.Extra
	Width      int    // of what stands there in bytes: 0 of what goes without a trace
}

// Trace returns what Mask returns, and in order what was taken out. Nothing is counted as used. A nil Masker takes nothing out.
func (m *Masker) Trace(b []byte) (masked []byte, taken []Taken) {
	if m == nil {
		return b, nil
	}
	return m.apply(b, func(string) {})
}

// apply masks b and tells of each mask that it uses.
func (m *Masker) apply(b []byte, use func(mask string)) (masked []byte, taken []Taken) {
	taken = m.builtin(b)
	if len(taken) == 0 && len(m.extra) == 0 {
		return b, nil
	}
	t := tracing{text: b, masked: b, use: use}
	if len(taken) > 0 {
		t = t.with(taken)
	}
	for _, e := range m.extra {
		if found := t.matches(e); len(found) > 0 {
			t = t.with(found)
		}
	}
	return t.masked, t.taken
}

// A tracing is a text that was masked so far.
type tracing struct {
	text, masked []byte
	taken        []Taken
	use          func(mask string)
}

// with takes more out. Their ranges are of what is masked so far, their Width is -1 for what goes without a trace.
func (t *tracing) with(found []Taken) tracing {
	next := tracing{text: t.text, masked: make([]byte, 0, len(t.masked)), taken: make([]Taken, 0, len(found)+len(t.taken)), use: t.use}
	done, taken := 0, t.taken
	upTo := func(end int) { // what stands there stays
		for len(taken) > 0 && (taken[0].At < end || taken[0].At == end && taken[0].Width == 0) {
			k := taken[0]
			k.At += len(next.masked) - done
			next.taken, taken = append(next.taken, k), taken[1:]
		}
		next.masked = append(next.masked, t.masked[done:end]...)
		done = end
	}
	for _, k := range found {
		upTo(k.Start)
		done = k.End
		for len(taken) > 0 && taken[0].At < k.End {
			taken = taken[1:]
		}
		k.Start, k.End, k.At = t.origin(k.Start, false), t.origin(k.End, true), len(next.masked)
		if k.Width >= 0 {
			next.masked = append(append(append(next.masked, '<'), k.Mask...), '>')
		}
		k.Width = len(next.masked) - k.At
		next.taken = append(next.taken, k)
		t.use(k.Mask)
	}
	upTo(len(t.masked))
	return next
}

// matches are those of an extra mask in what is masked.
func (t *tracing) matches(e Extra) (found []Taken) {
	done := 0
	for _, at := range e.Pattern.FindAllSubmatchIndex(t.masked, -1) {
		start, end := at[0], at[1]
		if len(at) > 2 {
			start, end = at[2], at[3]
		}
		if start < done || start >= end {
			continue
		}
		k := Taken{Mask: e.Name, Start: start, End: end, Own: true}
		if e.Drop {
			k.Width = -1
		}
		found, done = append(found, k), end
	}
	return found
}

// origin returns where in the text the place at of what is masked comes from; of one within the name of a mask, where what it
// stands for begins or ends.
func (t *tracing) origin(at int, end bool) int {
	from, shift := 0, 0
	for _, k := range t.taken {
		if k.At >= at && (k.At > at || !end) {
			break
		}
		after := k.At + k.Width
		if at < after {
			if end {
				return k.End
			}
			return k.Start
		}
		from, shift = after, k.End
	}
	return shift + at - from
}

// builtin returns, in order, what the built-in masks take out of b. A nil Masker has none.
func (m *Masker) builtin(b []byte) []Taken {
	if m == nil || len(b) == 0 {
		return nil
	}
	m.begun.Do(m.begin)
	s := search{m: m, b: b}
	for i := m.filter.Seek(b, 0); i < len(b); {
		i = m.filter.Seek(b, s.at(i))
	}
	return s.taken
}

// A search is one look at a text.
type search struct {
	m     *Masker
	b     []byte
	taken []Taken
	done  int // where the last of them ends
}

// at tries the masks that may begin at i and returns where to go on.
func (s *search) at(i int) int {
	if chars.Word[s.b[i]] && !s.begins(i) {
		return i + 1
	}
	for _, k := range s.m.masks[s.b[i]] {
		if next := k.find(s, i); next > i {
			return next
		}
	}
	return i + 1
}

func (s *search) take(start, end int, mask string) {
	s.taken = append(s.taken, Taken{Mask: mask, Start: start, End: end})
	s.done = end
}

// before returns the bytes before i up to the last mask. A mask counts as the beginning of the text, so that what is
// found does not depend on whether what stands before it was masked already.
func (s *search) before(i int) []byte { return s.b[s.done:i] }

func (s *search) begins(i int) bool { return chars.Boundary(s.b[s.done:], i-s.done) }

func (s *search) ends(i int) bool { return i >= len(s.b) || !chars.Word[s.b[i]] }

// number tells whether a number can begin at i: not within a version, a name with hyphens or an address.
func (s *search) number(i int) bool {
	before := s.before(i)
	n := len(before)
	if n == 0 {
		return true
	}
	switch before[n-1] {
	case '.', '-':
		return false
	case ':':
		return n == 1 || before[n-2] != ':' && !chars.IsDigit(before[n-2])
	}
	return s.begins(i)
}

// The names of masks that more than one shape leads to, or that code refers to.
const (
	maskHome      = "home"
	maskWorkTree  = "worktree"
	maskTemp      = "temp"
	maskTempName  = "temp-name"
	maskUUID      = "uuid"
	maskTimestamp = "timestamp"
	maskDate      = "date"
	maskTime      = "time"
	maskDuration  = "duration"
	maskUnixTime  = "unix-time"
	maskCacheKey  = "cache-key"
	maskEventID   = "event-id"
	maskLinks     = "links"
	maskID        = "id"
	maskPID       = "pid"
	maskPort      = "port"
)
