package scrub

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
)

// MaskOptions are what NewMasker takes. A nil *MaskOptions is the zero MaskOptions.
type MaskOptions struct {
	// Home, WorkTree and Temp are the absolute paths that <home>, <worktree> and <temp> stand for; none where empty or "/".
	// Of two that contain each other the longer is taken where both fit.
	Home, WorkTree, Temp string
	// Disabled names the masks that are not used.
	Disabled []string
	// Rules is the version of the shapes by which ids and temporary names are told; 0 and 1: by their letters. From MaskRules on
	// it is by their place alone, and what they are shows where two are held against each other (Fits).
	Rules int
	// Extra are a project's own masks, used after the built-in ones, in this order.
	Extra []ExtraMask
}

// An ExtraMask is a project's own mask: each match of Pattern becomes <Name>, or where it has a group, the first group
// of each match does. An empty group is left alone.
//
// With Drop the match goes without a trace, as a line must that a program prints in one run and not in the next; the mask
// is counted all the same.
type ExtraMask struct {
	Name    string
	Pattern *regexp.Regexp
	Drop    bool
}

// Check reports what is wrong with o: a disabled mask that does not exist, an extra one without a name of lowercase
// letters, digits and hyphens, with a name that is taken, or without a pattern. NewMasker ignores such entries.
func (o *MaskOptions) Check() error {
	names := make(map[string]bool)
	for _, info := range Masks() {
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
			return fmt.Errorf("no mask is named %q; there are %s", name,
				strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
	}
	return nil
}

// MaskRules is the version of the masks that a recording is made with now.
const MaskRules = 2

var maskName = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,31}$`)

// A Masker replaces volatile facts by the names of their masks, and counts them. Its methods may be called by several
// goroutines at once.
type Masker struct {
	filter
	masks [256][]*mask // by the first byte
	off   map[string]bool
	place bool        // ids and temporary names are told by their place
	paths []knownPath // longest first
	extra []ExtraMask

	mu   sync.Mutex // guards used
	used map[string]int
}

// A knownPath is a directory that a mask stands for.
type knownPath struct {
	path string
	mask string // "" where the path itself is not volatile
	temp bool   // names below it may be made up
}

// NewMasker returns a Masker of the built-in masks that are not disabled, and the extra ones.
func NewMasker(o *MaskOptions) *Masker {
	if o == nil {
		o = new(MaskOptions)
	}
	m := &Masker{filter: newFilter(), off: make(map[string]bool), used: make(map[string]int), place: o.Rules >= MaskRules}
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
	for i := range builtin {
		m.install(&builtin[i])
	}
	return m
}

func (m *Masker) install(k *mask) {
	if k.find == nil || m.off[k.Name] && !k.always {
		return
	}
	firsts := k.allow(&m.filter)
	if k.always {
		firsts = m.allowPaths()
	}
	for _, first := range firsts {
		if !slices.Contains(m.masks[first], k) {
			m.masks[first] = append(m.masks[first], k)
		}
	}
}

// allowPaths lets through what the known paths begin with.
func (m *Masker) allowPaths() (firsts []byte) {
	for _, p := range m.paths {
		m.allowText(p.path)
		firsts = append(firsts, p.path[0])
	}
	return firsts
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

// Mask returns b with each volatile fact replaced by the name of its mask in angle brackets. It returns b itself where
// there is none, and never writes to b.
func (m *Masker) Mask(b []byte) []byte {
	p := masking{m: m, b: b}
	for i := m.seek(b, 0); i < len(b); {
		i = m.seek(b, p.at(i))
	}
	out := p.finish()
	for _, e := range m.extra {
		out = p.apply(e, out)
	}
	if p.used != nil {
		m.count(p.used)
	}
	return out
}

// Digest returns the digest of b by which recordings are compared: of its bytes after Renumber and Mask.
func (m *Masker) Digest(b []byte) cas.Digest { return cas.Sum(m.Mask(Renumber(b))) }

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

// A masking is the state of one call of Mask.
type masking struct {
	m    *Masker
	b    []byte
	out  []byte
	done int // what is before it was masked or copied to out
	used map[string]int
	only func(start, end int, mask string) // instead of replacing; nil replaces
}

// at tries the masks that may begin at i and returns where to go on.
func (p *masking) at(i int) int {
	if wordChars[p.b[i]] && !p.begins(i) {
		return i + 1
	}
	for _, k := range p.m.masks[p.b[i]] {
		if next := k.find(p, i); next > i {
			return next
		}
	}
	return i + 1
}

// put replaces the bytes from start to end by the mask's name.
func (p *masking) put(start, end int, name string) {
	if p.only != nil {
		p.only(start, end, name)
		p.done = end
		return
	}
	if p.used == nil {
		p.used = make(map[string]int)
		p.out = make([]byte, 0, len(p.b))
	}
	p.used[name]++
	p.out = append(p.out, p.b[p.done:start]...)
	p.out = append(append(append(p.out, '<'), name...), '>')
	p.done = end
}

// unname takes out the name that put has just put in: the fact goes without a trace.
func (p *masking) unname(name string) { p.out = p.out[:len(p.out)-len("<>")-len(name)] }

func (p *masking) finish() []byte {
	if p.used == nil {
		return p.b
	}
	return append(p.out, p.b[p.done:]...)
}

// apply uses an extra mask on b.
func (p *masking) apply(e ExtraMask, b []byte) []byte {
	next := masking{b: b, used: p.used}
	for _, at := range e.Pattern.FindAllSubmatchIndex(b, -1) {
		start, end := at[0], at[1]
		if len(at) > 2 {
			start, end = at[2], at[3]
		}
		if start >= 0 && start < end && start >= next.done {
			next.put(start, end, e.Name)
			if e.Drop {
				next.unname(e.Name)
			}
		}
	}
	if next.done == 0 {
		return b
	}
	p.used = next.used
	return append(next.out, b[next.done:]...)
}

// before returns the bytes before i up to the last mask. A mask counts as the beginning of the text, so that what is
// found does not depend on whether what stands before it was masked already.
func (p *masking) before(i int) []byte { return p.b[p.done:i] }

// begins tells whether a word can begin at i.
func (p *masking) begins(i int) bool { return boundary(p.b[p.done:], i-p.done) }

// ends tells whether a word can end before i.
func (p *masking) ends(i int) bool { return i >= len(p.b) || !wordChars[p.b[i]] }

// number tells whether a number can begin at i: not within a version, a name with hyphens or an address.
func (p *masking) number(i int) bool {
	before := p.before(i)
	n := len(before)
	if n == 0 {
		return true
	}
	switch before[n-1] {
	case '.', '-':
		return false
	case ':':
		return n == 1 || before[n-2] != ':' && !isDigit(before[n-2])
	}
	return p.begins(i)
}

// goesOn tells whether one of the separators stands at i and more of the same word after it. A mask is more of it, as
// what it stands for may be.
func (p *masking) goesOn(i int, separators string) bool {
	return i+1 < len(p.b) && strings.IndexByte(separators, p.b[i]) >= 0 && (isAlnum(p.b[i+1]) || p.b[i+1] == '<')
}
