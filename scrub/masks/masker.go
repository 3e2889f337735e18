package masks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// On tells whether the mask name is used; a nil Masker uses none.
func (m *Masker) On(name string) bool { return m != nil && !m.off[name] }

// Count counts one use of the mask name, which somebody else has found.
func (m *Masker) Count(name string) { m.count(map[string]int{name: 1}) }

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

// window is how much DigestReader masks at once, in bytes.
const window = 1 << 20

// DigestReader is Digest of what r gives. Of a text of more than 1 MiB as many whole lines are masked at once as fit into that,
// so that a fact which is told from another line may stand; it is the same for equal texts. The error is r's.
func (m *Masker) DigestReader(r io.Reader) (cas.Digest, error) {
	h := cas.NewHasher()
	seen := make(map[string]int)
	buf := make([]byte, 0, window)
	for {
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return cas.Digest{}, err
		}
		take := len(buf)
		if lines := bytes.LastIndexByte(buf, '\n') + 1; !ended && lines > 0 {
			take = lines
		}
		_, _ = h.Write(m.Mask(placeholders.Renumber(buf[:take], seen)))
		buf = buf[:copy(buf, buf[take:])]
		if ended {
			return h.Sum(), nil
		}
	}
}
