package sessionlog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A Form is how an entry stands in its log.
type Form uint8

// The forms. Each stands on a line of its own or is an element of one list that is the whole log.
const (
	FormEnvelope Form = iota // {"seq":0,"event":{"kind":…}}
	FormBare                 // {"kind":…}
	FormRecord               // {"seq":0,"record_type":…}: what older producers kept in the same file; not an event
)

// String returns the form's name.
func (f Form) String() string { return [...]string{"envelope", "bare", "record"}[f] }

// An Entry is one entry of a log: its bytes as they stood, and what a reader needs to know of them. What the event holds is
// read on demand.
type Entry struct {
	Form   Form
	Line   int   // where it begins, from 1
	Offset int64 // the same in bytes

	Seq    uint64
	HasSeq bool
	G      uint64 // the recorder's global ordinal; 0 for none
	TMS    *int64 // milliseconds since the recording began; nil for none

	// Kind is the event's kind; of a FormRecord, "". Turn is the event's turn, where it has one that is an integer.
	Kind    Kind
	Turn    int
	HasTurn bool

	before []byte // what stands between the entry before and this one
	raw    []byte
	after  []byte // what stands behind it in its line, with the newline
	event  []byte // of raw, from at on
	at     int

	category []byte // what the event carries, as it stands; nil for none
}

// Raw returns the entry as it stood: one JSON value.
func (e *Entry) Raw() []byte { return e.raw }

// EventRaw returns the event as it stood: one JSON object; nil of a FormRecord.
func (e *Entry) EventRaw() []byte { return e.event }

// Event reads the event. It is nil of a FormRecord. The error is an *EventError.
func (e *Entry) Event() (Event, error) {
	if e.event == nil {
		return nil, nil
	}
	return parseEvent(e.Kind, e.event)
}

// AppendTo appends the entry as it stood, with the white space and the commas around it, so that all entries of a log and
// the Tail of its reader are the log again.
func (e *Entry) AppendTo(dst []byte) []byte {
	return append(append(append(dst, e.before...), e.raw...), e.after...)
}

// Clone returns a copy that shares no memory with the reader.
func (e *Entry) Clone() *Entry {
	c := *e
	all := e.AppendTo(nil)
	raw, after := len(e.before), len(e.before)+len(e.raw)
	c.before, c.raw, c.after = all[:raw:raw], all[raw:after:after], all[after:]
	if e.event != nil {
		c.event = c.raw[e.at : e.at+len(e.event)]
		c.category = bytes.Clone(e.category)
	}
	if e.TMS != nil {
		ms := *e.TMS
		c.TMS = &ms
	}
	return &c
}

// ParseEntry reads one entry, without what stands around it. The error wraps ErrNotJSON or ErrMalformed. The entry shares the
// memory of b.
func ParseEntry(b []byte) (*Entry, error) {
	var p entryParser
	e := &Entry{raw: b}
	if err := p.parse(e); err != nil {
		return nil, err
	}
	return e, nil
}

// An entryParser reads entries one after another, each in one pass. What an object is shows only when all its keys were seen,
// so the values of the keys that may matter are remembered as they stand.
type entryParser struct {
	s            jsonscan.Scanner
	value        jsonscan.Scanner
	entry        []byte
	outer, inner values
}

// values are the keys of an object that may matter, by their numbers: where their values stand in the entry.
type values struct {
	at    [numKeys]span
	twice uint16 // a bit a key
}

// A span is a part of an entry, which is no longer than MaxEntry. An empty one is of a key that is not there.
type span struct{ from, to int32 }

// raw returns the value of a key as it stands; nil for none.
func (p *entryParser) raw(v *values, k int) []byte {
	at := v.at[k]
	return p.entry[at.from:at.to]
}

// The keys that may matter.
const (
	keyKind = iota
	keyTurn
	keySeq
	keyEvent
	keyRecordType
	keyG
	keyTMS
	keyCategory
	numKeys
)

var keyNames = [numKeys]string{"kind", "turn", "seq", "event", "record_type", "g", "t_ms", "category"}

func keyOf(b []byte) int {
	for k, name := range keyNames {
		if name == string(b) {
			return k
		}
	}
	return numKeys
}

// parse reads e.raw into the rest of e. That an event is what its kind demands is not asked here.
func (p *entryParser) parse(e *Entry) error {
	p.outer, p.inner, p.entry = values{}, values{}, e.raw
	p.s.Reset(e.raw)
	p.object(&p.outer, &p.inner)
	if err := p.s.End(); err != nil {
		return notJSON(e.raw, err)
	}
	if err := jsonscan.ValidUTF8(e.raw); err != nil {
		return fmt.Errorf("%w: %w", ErrNotJSON, err)
	}
	if err := p.classify(e); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// notJSON tells JSON that is no object from what is no JSON.
func notJSON(b []byte, err error) error {
	if bad := jsonscan.Valid(b); bad != nil {
		return fmt.Errorf("%w: %w", ErrNotJSON, bad)
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// object reads the object that comes next; the object under its key "event", where within is not nil, into that.
func (p *entryParser) object(into, within *values) {
	s := &p.s
	for s.Begin('{'); s.More('}'); {
		k := keyOf(s.Key())
		if k == numKeys {
			s.Skip()
			continue
		}
		if into.at[k].to != 0 {
			into.twice |= 1 << k
		}
		from := s.Offset()
		if k == keyEvent && within != nil && s.Peek() == '{' {
			*within = values{}
			p.object(within, nil)
		} else {
			s.Skip()
		}
		if s.Err() != nil {
			return
		}
		into.at[k] = span{int32(from), int32(s.Offset())}
	}
}

// classify says what the object is. One with an object under "event" is an envelope, unless it has a kind of its own and no
// seq that is a number: that is a bare event with a key of that name.
func (p *entryParser) classify(e *Entry) error {
	out := &p.outer
	_, hasKind := out.has(keyKind)
	_, hasRecord := out.has(keyRecordType)
	event := p.raw(out, keyEvent)
	switch {
	case len(event) > 0 && event[0] == '{' && (!hasKind || p.number(keySeq)):
		e.Form, e.event, e.at = FormEnvelope, event, int(out.at[keyEvent].from)
		if err := p.envelope(e, keySeq, keyEvent, keyG, keyTMS); err != nil {
			return err
		}
		return p.event(e, &p.inner)
	case hasKind && !hasRecord:
		e.Form, e.event = FormBare, e.raw
		return p.event(e, out)
	case hasRecord:
		e.Form = FormRecord
		return p.envelope(e, keySeq, keyRecordType, keyG, keyTMS)
	}
	return errors.New(`want "event" with an object, "kind" or "record_type"`)
}

// has reports where the value of a key stands, and whether it is there.
func (v *values) has(k int) (span, bool) { return v.at[k], v.at[k].to != 0 }

// number reports whether the value of a key of the entry itself is a number.
func (p *entryParser) number(k int) bool {
	v := p.raw(&p.outer, k)
	return len(v) > 0 && (v[0] == '-' || v[0]-'0' <= 9)
}

// once says which of the keys stands twice.
func (v *values) once(keys ...int) error {
	for _, k := range keys {
		if v.twice&(1<<k) != 0 {
			return fmt.Errorf("key %q stands twice", keyNames[k])
		}
	}
	return nil
}

// envelope reads what an envelope has beside the event.
func (p *entryParser) envelope(e *Entry, keys ...int) error {
	if err := p.outer.once(keys...); err != nil {
		return err
	}
	s := &p.value
	if p.stands(&p.outer, keySeq) {
		e.Seq, e.HasSeq = s.Uint(), true
		if err := s.End(); err != nil {
			return fmt.Errorf("seq: %w", err)
		}
	}
	if p.stands(&p.outer, keyG) {
		e.G = s.Uint()
		if err := s.End(); err != nil {
			return fmt.Errorf("g: %w", err)
		}
	}
	if p.stands(&p.outer, keyTMS) {
		ms := s.Int()
		e.TMS = &ms
		if err := s.End(); err != nil {
			return fmt.Errorf("t_ms: %w", err)
		}
	}
	return nil
}

// stands reports whether a key is there and not null; p.value then stands before its value.
func (p *entryParser) stands(v *values, k int) bool {
	raw := p.raw(v, k)
	if len(raw) == 0 || raw[0] == 'n' {
		return false
	}
	p.value.Reset(raw)
	return true
}

// event reads the kind and the turn.
func (p *entryParser) event(e *Entry, v *values) error {
	if err := v.once(keyKind, keyTurn, keyCategory); err != nil {
		return err
	}
	s := &p.value
	if !p.stands(v, keyKind) {
		return errNoKind
	}
	kind := s.TextBytes()
	if s.End() != nil {
		return errNoKind
	}
	e.Kind = kindNamed(kind)
	if at, ok := v.has(keyCategory); ok {
		e.category = p.entry[at.from:at.to]
	}
	if p.stands(v, keyTurn) {
		turn := jsonscan.Integer[int](s)
		if e.HasTurn = s.End() == nil; e.HasTurn {
			e.Turn = turn
		}
	}
	return nil
}

// kindNamed returns a kind that shares no memory with b.
func kindNamed(b []byte) Kind {
	if k, ok := kindNames[string(b)]; ok {
		return k
	}
	return Kind(b)
}

var kindNames = func() map[string]Kind {
	all := make(map[string]Kind, len(kinds))
	for k := range kinds {
		all[string(k)] = k
	}
	return all
}()

// A Stamp is what an envelope of ours has behind its event. Nil and zero are no stamp.
type Stamp struct {
	G   uint64 // the recorder's global ordinal
	TMS *int64 // milliseconds since the recording began
}

// AppendEnvelope appends the line of an event, without a newline: {"seq":…,"event":{…}} and, behind the event, g and t_ms where s
// has them. The error is that of AppendEvent; dst is then as it was.
func AppendEnvelope(dst []byte, seq uint64, e Event, s *Stamp) ([]byte, error) {
	was := dst
	dst = strconv.AppendUint(append(dst, `{"seq":`...), seq, 10)
	dst, err := AppendEvent(append(dst, `,"event":`...), e)
	if err != nil {
		return was, err
	}
	if s != nil && s.G != 0 {
		dst = strconv.AppendUint(append(dst, `,"g":`...), s.G, 10)
	}
	if s != nil && s.TMS != nil {
		dst = strconv.AppendInt(append(dst, `,"t_ms":`...), *s.TMS, 10)
	}
	return append(dst, '}'), nil
}

// What a LoadError wraps.
var (
	ErrTorn        = errors.New("the log ends within an entry, as a crash leaves it")
	ErrNotJSON     = errors.New("not JSON")
	ErrMalformed   = errors.New("not an entry of a session log")
	ErrLineTooLong = fmt.Errorf("longer than the limit of %d bytes", MaxEntry)
)

// A LoadError is a log that cannot be read, and where.
type LoadError struct {
	Path   string
	Line   int   // from 1, blank lines included
	Offset int64 // where the entry begins, in bytes
	Err    error // wraps ErrTorn, ErrNotJSON, ErrMalformed or ErrLineTooLong, or is an *EventError
}

func (e *LoadError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }
