package scrub

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// A source is what told of a value that came with the traffic. Of each no more than so many are learnt, so that a program that makes up
// a new one for every request does not slow the scan down, and a site that sets a cookie with each answer takes no password's place.
// Later ones are hidden in their own place only.
type source uint8

const (
	ofHeaders source = iota // and of URLs
	ofBodies                // names in them
	ofContext               // a name and a sign before it
	sources
)

var maxLearnt = [sources]int{512, 512, 256}

const (
	// MaxFound is how many secrets a Scrubber tells the shapes of. Later ones are hidden all the same.
	MaxFound = 4096
	// maxDummies is how many dummies are searched for; later ones are known by where they stand.
	maxDummies = 512 + 512 + 256
)

// A memory has the secrets of one run.
type memory struct {
	key   Key
	index atomic.Pointer[index]
	fixed bool // nothing more is learnt: see Scrubber.Since

	seeker atomic.Pointer[seeker] // nil for nothing: see Seek
	looked looked

	mu         sync.Mutex        // guards what follows, and is held to replace index
	known      map[string]*known // by value
	order      []*known          // the same, as they became known
	byHex      map[string]*known // by the digits of the placeholder
	aliases    map[string]*known // by value: dummies that are not searched for
	found      map[string]Secret // by the digits of the placeholder
	dummies    int               // that are searched for
	learnt     [sources]int
	notCovered map[string]bool
	counts     map[string]int
}

// looked are header fields that were scrubbed before: most come again with each request of a program.
type looked struct {
	mu     sync.Mutex // guards what follows
	index  *index     // what was known then: they may read otherwise once more is
	seeker *seeker
	fields map[[2]string]field // by name and value
}

// A field is the value of one as it may be written, and the rule of the secret that it is; "" where it is none.
type field struct{ value, rule string }

// maxLookedFields bounds how many of them are held, and maxLookedField how long one is, in bytes.
const maxLookedFields, maxLookedField = 1024, 512

// lookedAt returns a field that was scrubbed before; false where it was not, or something has become known since.
func (m *memory) lookedAt(name, value string) (field, bool) {
	l := &m.looked
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.fields[[2]string{name, value}]
	return f, ok && l.index == m.index.Load() && l.seeker == m.seeker.Load()
}

// look notes how a field reads by what was known before it was scrubbed, which is index and seeker.
func (m *memory) look(index *index, seeker *seeker, name, value string, f field) {
	l := &m.looked
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fields == nil || l.index != index || l.seeker != seeker || len(l.fields) >= maxLookedFields {
		l.index, l.seeker, l.fields = index, seeker, make(map[[2]string]field)
	}
	if len(name)+len(value) <= maxLookedField {
		l.fields[[2]string{name, value}] = f
	}
}

// forget has all fields scrubbed again.
func (m *memory) forget() {
	m.looked.mu.Lock()
	defer m.looked.mu.Unlock()
	m.looked.fields = nil
}

func (m *memory) init(key Key, x *index) {
	m.key = key
	m.known, m.byHex, m.aliases = make(map[string]*known), make(map[string]*known), make(map[string]*known)
	m.found, m.notCovered, m.counts = make(map[string]Secret), make(map[string]bool), make(map[string]int)
	m.index.Store(x)
}

// standing returns what is known of a value that stands alone; nil for nothing. It is called with mu held.
func (m *memory) standing(value string) *known {
	if k := m.known[value]; k != nil {
		return k
	}
	return m.aliases[value]
}

func (m *memory) isKnown(value string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[value] != nil
}

// add makes values known, and is called with mu held.
func (m *memory) add(all ...*known) {
	var fresh []*known
	for _, k := range all {
		if digits := Digits(k.placeholder); m.byHex[digits] == nil || m.byHex[digits].dummy && !k.dummy {
			m.byHex[digits] = k
		}
		if m.known[k.value] == nil {
			m.known[k.value] = k
			fresh = append(fresh, k)
		}
	}
	if len(fresh) > 0 {
		m.order = append(m.order, fresh...)
		m.index.Store(m.index.Load().with(fresh))
	}
}

// addNamed makes value known and returns its placeholder.
func (m *memory) addNamed(name, value string) (placeholder string) {
	value = strings.TrimSpace(value)
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.standing(value); k != nil {
		return k.written()
	}
	k := m.newKnown(placeholders.RuleName(name), value)
	switch {
	case placeholders.Is(value):
		return value
	case value == "", m.fixed:
	case names.Searchable(value):
		m.add(k)
	default:
		m.notCovered[name] = true
	}
	return k.placeholder
}

// newKnown returns a value that is to be known, under a rule or that by which it was found first. It is called with mu held.
func (m *memory) newKnown(rule, value string) *known {
	placeholder := m.key.placeholder(rule, []byte(value))
	if first, ok := m.found[Digits(placeholder)]; ok {
		rule, placeholder = placeholders.Rule(first.Placeholder), first.Placeholder
	}
	return &known{rule: rule, value: value, placeholder: placeholder}
}

// alias makes k known where it stands alone. It is called with mu held.
func (m *memory) alias(k *known) {
	if m.aliases[k.value] == nil {
		m.aliases[k.value] = k
	}
	if digits := Digits(k.placeholder); m.byHex[digits] == nil {
		m.byHex[digits] = k
	}
}

// learn is addNamed for a value that a header or a URL told.
func (m *memory) learn(name, value string) (placeholder string) {
	if !m.admits(name, value, ofHeaders) {
		return m.concealOnly(name, value)
	}
	return m.noteFound(m.addNamed(name, value), value)
}

// learnNamed is addNamed for a value that a name in a body told. fresh reports whether the value was not known before and is
// now. One that does not look like a secret (names.Learnable), and those after too many, are not searched for: here is true, and
// the value is to be hidden where it stands.
func (m *memory) learnNamed(name, value string) (fresh, here bool) {
	value = strings.TrimSpace(value)
	m.mu.Lock()
	isKnown, isAlias := m.known[value] != nil, m.aliases[value] != nil
	m.mu.Unlock()
	switch {
	case value == "" || placeholders.Is(value) || isKnown:
		return false, false
	case isAlias || !m.admits(name, value, ofBodies):
		return false, true
	}
	m.noteFound(m.addNamed(name, value), value)
	return m.isKnown(value), false
}

// learnLeak makes a value known that its context told, and returns it; nil where it is known, or cannot be searched for.
func (m *memory) learnLeak(rule, value string) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fixed || m.learnt[ofContext] >= maxLearnt[ofContext] || m.known[value] != nil || !names.Learnable(value) {
		return nil
	}
	m.learnt[ofContext]++
	k := m.newKnown(rule, value)
	m.add(k)
	return k
}

// admits reports whether value may be learnt: it looks like a secret, and there are not too many of them yet.
func (m *memory) admits(name, value string, of source) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[value] != nil || placeholders.Is(value) {
		return true
	}
	if !names.Learnable(value) || m.learnt[of] >= maxLearnt[of] {
		m.notCovered[name] = true
		return false
	}
	m.learnt[of]++
	return true
}

// conceal returns the placeholder of value without making it known.
func (m *memory) conceal(name, value string) string {
	value = strings.TrimSpace(value)
	m.mu.Lock()
	k := m.standing(value)
	m.mu.Unlock()
	switch {
	case k != nil:
		return k.written()
	case placeholders.Is(value):
		return value
	}
	return m.noteFound(m.key.placeholder(placeholders.RuleName(name), []byte(value)), value)
}

// concealOnly is conceal for a value that stands elsewhere in its own right: NotCovered lists its name.
func (m *memory) concealOnly(name, value string) string {
	m.mu.Lock()
	if m.known[value] == nil {
		m.notCovered[name] = true
	}
	m.mu.Unlock()
	return m.conceal(name, value)
}

// noteFound notes the shape of a value that a placeholder stands for, and returns the placeholder: that under which the value
// was found first. A token that an answer brings has the name of its shape, and keeps that where a header says later what it is for: a
// replay knows it from its beginning, and what it writes must read the same.
func (m *memory) noteFound(placeholder, value string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok := m.found[Digits(placeholder)]; ok {
		return first.Placeholder
	}
	if !placeholders.Is(value) {
		m.note(Secret{Placeholder: placeholder}, value)
	}
	return placeholder
}

// noteLate notes a known value that a Scrubber of Since has found.
func (m *memory) noteLate(k *known) {
	if !m.fixed {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(Secret{Placeholder: k.written(), Late: true}, k.value)
}

// note is called with mu held.
func (m *memory) note(s Secret, value string) {
	digits := Digits(s.Placeholder)
	if _, ok := m.found[digits]; ok || len(m.found) >= MaxFound || len(value) > maxDummy {
		return
	}
	s.Shape = shapeOf(value)
	m.found[digits] = s
}

func (m *memory) count(spans []span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range spans {
		if !f.blank {
			m.counts[f.rule]++
		}
	}
}

// valueOf returns what the digits of a placeholder stand for.
func (m *memory) valueOf(digits string) (value string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.byHex[digits]; k != nil {
		return k.value, true
	}
	return "", false
}

// without returns b without the secrets that spans are, and whether there was one.
func (m *memory) without(b []byte, spans []span) (out []byte, found bool) {
	if len(spans) == 0 { // as of most texts
		return b, false
	}
	sortSpans(spans)
	if spans = resolve(spans); len(spans) == 0 {
		return b, false
	}
	return m.replace(make([]byte, 0, len(b)+len(spans)*placeholders.Longest), b, 0, spans, nil), true
}

// replace appends b from from to dst, with placeholders for the spans, which do not overlap.
func (m *memory) replace(dst, b []byte, from int, spans []span, note func(start, end, length int)) []byte {
	for _, f := range spans {
		dst = append(dst, b[from:f.start]...)
		at := len(dst)
		switch {
		case f.blank:
		case f.known != nil:
			dst = append(dst, placeholders.With(f.known.written(), f.form)...)
			m.noteLate(f.known)
		default:
			dst = append(dst, m.conceal(f.rule, string(b[f.start:f.end]))...)
		}
		if note != nil {
			note(f.start, f.end, len(dst)-at)
		}
		from = f.end
	}
	if len(spans) > 0 {
		m.count(spans)
	}
	return append(dst, b[from:]...)
}

// teach tells whether the spans of b hold a secret that would be learnt.
func (m *memory) teach(b []byte, spans []span) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.learnt[ofContext] < maxLearnt[ofContext] && slices.ContainsFunc(spans, func(f span) bool {
		return f.context && m.known[string(b[f.start:f.end])] == nil
	})
}

// recognise makes known what is wanted and stands in b.
func (m *memory) recognise(b []byte) {
	k := m.seeker.Load()
	if k == nil {
		return
	}
	for _, g := range k.in(b) {
		m.AddAlias(g.Placeholder, g.Value)
		m.mu.Lock()
		if k := m.seeker.Load(); k != nil {
			found := func(w wanted) bool { return w.digits == Digits(g.Placeholder) }
			m.seeker.Store(newSeeker(k.key, slices.DeleteFunc(slices.Clone(k.all), found)))
		}
		m.mu.Unlock()
	}
}

// recogniseNext is recognise of a stream whose last bytes were tail before more came; it returns the last bytes that are.
func (m *memory) recogniseNext(tail, more []byte) []byte {
	k := m.seeker.Load()
	if k == nil {
		return nil
	}
	tail = append(tail, more...)
	m.recognise(tail)
	return append(tail[:0], tail[max(0, len(tail)-k.longest*longestEscape):]...)
}

// Seek makes secrets known again of which there is no more than placeholders of this key, and shapes: those that a recording
// met before anything gave them away, which a replay's program may bring from anywhere. Where a text that is given, to scrub
// it or to learn from it, has in it what such a placeholder stands for, plain or in a disguise, that value reads as the
// placeholder from then on, as one of AddAlias, in that text too. Nothing else is taken for it: the keyed digest of the value
// must be that of the placeholder.
//
// What is known already is not looked for, nor are tokens and private keys, whose shapes tell them everywhere, nor more than 64. A
// value is looked for where a word begins or ends.
func (m *memory) Seek(secrets []Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []wanted
	for _, secret := range secrets {
		digits := Digits(secret.Placeholder)
		known := m.byHex[digits] // which may be another's value in its place
		if w, ok := wantedOf(secret); ok && len(all) < maxWanted && (known == nil || m.key.digits([]byte(known.value)) != digits) {
			all = append(all, w)
		}
	}
	m.seeker.Store(newSeeker(m.key, all))
}

// LearnAll makes known what names in a body told. fresh reports whether something was not known before; over is where those stand that
// are not searched for, because they do not look like secrets or are too many: HideAt hides them there, and NotCovered lists their names.
func (m *memory) LearnAll(found []Named) (fresh bool, over []Place) {
	for _, v := range found {
		isFresh, here := m.learnNamed(v.Name, v.Value)
		fresh = fresh || isFresh
		if here {
			over = append(over, v.At)
		}
	}
	return fresh, over
}

// AddAlias makes value known under a placeholder that was made before: on replay, a dummy stands for the secret of the
// recording and must read the same. It reports false, and does nothing, where placeholder is none or value could not be
// searched for (see AddSecret).
func (m *memory) AddAlias(placeholder, value string) bool {
	value = strings.TrimSpace(value)
	if !placeholders.Is(placeholder) || !names.Searchable(value) {
		return false
	}
	placeholder, _ = placeholders.Split(placeholder)
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &known{rule: placeholders.Rule(placeholder), value: value, placeholder: placeholder}
	k.adopted.Store(&placeholder)
	m.add(k)
	return true
}

// spanOf is what hides a place whose bytes are raw, and which begins at start of a buffer.
func (m *memory) spanOf(p Place, raw []byte, start int) span {
	value := strings.TrimSpace(p.Value)
	k := &known{rule: placeholders.RuleName(p.Name), value: value, placeholder: m.conceal(p.Name, value)}
	return span{from: start, start: start, end: start + len(raw), rank: knownRank, rule: k.rule, known: k, form: formOn(k, raw)}
}
