package sessionlog

import (
	"bytes"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

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
	outer, inner values
	at           int // where inner begins
}

// values are the keys of an object that may matter, by their numbers.
type values struct {
	raw   [numKeys][]byte
	twice [numKeys]bool
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
	switch string(b) {
	case "kind":
		return keyKind
	case "turn":
		return keyTurn
	case "seq":
		return keySeq
	case "event":
		return keyEvent
	case "record_type":
		return keyRecordType
	case "g":
		return keyG
	case "t_ms":
		return keyTMS
	case "category":
		return keyCategory
	}
	return numKeys
}

// parse reads e.raw into the rest of e. That an event is what its kind demands is not asked here.
func (p *entryParser) parse(e *Entry) error {
	p.outer, p.inner = values{}, values{}
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
	if bytes.HasPrefix(b, []byte("\ufeff")) {
		return fmt.Errorf("%w: it begins with a byte order mark, which JSON has not", ErrNotJSON)
	}
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
		into.twice[k] = into.twice[k] || into.raw[k] != nil
		s.Peek()
		from := s.Offset()
		if k == keyEvent && within != nil && s.Peek() == '{' {
			p.at = from
			*within = values{}
			p.object(within, nil)
		} else {
			s.Skip()
		}
		if s.Err() != nil {
			return
		}
		into.raw[k] = s.Since(from)
	}
}

// classify says what the object is. One with an object under "event" is an envelope, unless it has a kind of its own and no
// seq that is a number: that is a bare event with a key of that name.
func (p *entryParser) classify(e *Entry) error {
	out := &p.outer
	hasEvent := len(out.raw[keyEvent]) > 0 && out.raw[keyEvent][0] == '{'
	switch {
	case hasEvent && (out.raw[keyKind] == nil || out.number(keySeq)):
		e.Form, e.event, e.at = FormEnvelope, out.raw[keyEvent], p.at
		if err := p.envelope(e, keySeq, keyEvent, keyG, keyTMS); err != nil {
			return err
		}
		return p.event(e, &p.inner)
	case out.raw[keyKind] != nil && out.raw[keyRecordType] == nil:
		e.Form, e.event, e.at = FormBare, e.raw, 0
		return p.event(e, out)
	case out.raw[keyRecordType] != nil:
		e.Form = FormRecord
		return p.envelope(e, keySeq, keyRecordType, keyG, keyTMS)
	}
	return fmt.Errorf(`want "event" with an object, "kind" or "record_type"`)
}

// once says which of the keys stands twice.
func (v *values) once(keys ...int) error {
	for _, k := range keys {
		if v.twice[k] {
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
	if s.Reset(p.outer.raw[keySeq]); p.outer.has(keySeq) {
		e.Seq, e.HasSeq = s.Uint(), true
		if err := s.End(); err != nil {
			return fmt.Errorf("seq: %w", err)
		}
	}
	if s.Reset(p.outer.raw[keyG]); p.outer.has(keyG) {
		e.G = s.Uint()
		if err := s.End(); err != nil {
			return fmt.Errorf("g: %w", err)
		}
	}
	if s.Reset(p.outer.raw[keyTMS]); p.outer.has(keyTMS) {
		ms := s.Int()
		e.TMS = &ms
		if err := s.End(); err != nil {
			return fmt.Errorf("t_ms: %w", err)
		}
	}
	return nil
}

// has reports whether a key is there and not null.
func (v *values) has(k int) bool { return len(v.raw[k]) > 0 && v.raw[k][0] != 'n' }

func (v *values) number(k int) bool { return v.has(k) && (v.raw[k][0] == '-' || v.raw[k][0]-'0' <= 9) }

// event reads the kind and the turn.
func (p *entryParser) event(e *Entry, v *values) error {
	if v.raw[keyKind] == nil {
		return errNoKind
	}
	if err := v.once(keyKind, keyTurn, keyCategory); err != nil {
		return err
	}
	s := &p.value
	s.Reset(v.raw[keyKind])
	kind := s.TextBytes()
	if s.End() != nil {
		return errNoKind
	}
	e.Kind, e.category = kindNamed(kind), v.raw[keyCategory]
	if s.Reset(v.raw[keyTurn]); v.has(keyTurn) {
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
