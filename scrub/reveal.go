package scrub

import (
	"bytes"
	"io"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// Fill returns b with each placeholder replaced by what valueOf says it stands for, in the form in which it stood.
// valueOf is given the digits of the placeholder, which are of the value alone; where it reports false the placeholder
// stays. Fill returns b itself where nothing is to be replaced, and never writes to b.
//
// In base64 a value of another length than the recorded one shifts what comes after it in the same group: the text around
// it then decodes to something else.
func Fill(b []byte, valueOf func(digits string) (value string, ok bool)) []byte {
	if !bytes.Contains(b, []byte(placeholders.Prefix)) {
		return b
	}
	var out []byte
	from := 0
	placeholders.Each(b, func(start, end int) {
		placeholder := string(b[start:end])
		value, ok := valueOf(Digits(placeholder))
		if !ok {
			return
		}
		_, form := placeholders.Split(placeholder)
		out = append(append(out, b[from:start]...), placeholders.Disguise(value, form)...)
		from = end
	})
	if from == 0 {
		return b
	}
	return append(out, b[from:]...)
}

// Digits returns the hex digits of a placeholder: two placeholders with the same ones stand for the same value.
func Digits(placeholder string) string { return placeholders.Digits(placeholder) }

// Renumber replaces each placeholder of b by td_#<n>, where n counts the different secrets by their first appearance in b,
// from 1. So neither the project's key, nor the secret, nor the rule that found it first matters to a digest of what it
// returns, while which places held the same secret still does. It returns b itself where nothing is to be replaced, and
// never writes to b.
func Renumber(b []byte) []byte { return placeholders.Renumber(b, nil) }

// Reveal is Fill with the values that s knows: what a program gets of a recorded answer.
func (s *Scrubber) Reveal(b []byte) []byte { return Fill(b, s.valueOf) }

func (s *Scrubber) valueOf(digits string) (value string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.byHex[digits]; k != nil {
		return k.value, true
	}
	return "", false
}

// Revealing returns a reader of what Reveal makes of r as a whole, wherever r's reads end.
func (s *Scrubber) Revealing(r io.Reader) io.Reader { return &revealing{s: s, r: r} }

// A revealing holds back what may be the beginning of a placeholder.
type revealing struct {
	s    *Scrubber
	r    io.Reader
	held []byte // read and not looked through
	out  []byte // to be given
	err  error
}

func (v *revealing) Read(p []byte) (int, error) {
	for len(v.out) == 0 && v.err == nil {
		v.fill()
	}
	n := copy(p, v.out)
	if v.out = v.out[n:]; n == 0 && len(p) > 0 {
		return 0, v.err
	}
	return n, nil
}

func (v *revealing) fill() {
	buf := make([]byte, 32<<10)
	n, err := v.r.Read(buf)
	v.held, v.err = append(v.held, buf[:n]...), err
	cut := len(v.held)
	if err == nil {
		cut = placeholders.Cut(v.held)
	}
	v.out = v.s.Reveal(bytes.Clone(v.held[:cut]))
	v.held = append(v.held[:0], v.held[cut:]...)
}

// LearnFrom makes known what the placeholders of stored stand for in real, of which stored is the scrubbed form: a replay
// that gives the program a file with the secrets of the recording must find these too, beside its own. It learns nothing of
// what does not fit.
func (s *Scrubber) LearnFrom(stored, real []byte) {
	type place struct{ start, end int }
	var places []place
	placeholders.Each(stored, func(start, end int) { places = append(places, place{start, end}) })
	from := 0
	for i, p := range places {
		literal := stored[from:p.start]
		if !bytes.HasPrefix(real, literal) {
			return
		}
		real = real[len(literal):]
		next := stored[p.end:]
		if i+1 < len(places) {
			next = stored[p.end:places[i+1].start]
		}
		n := s.learnAt(string(stored[p.start:p.end]), real, next)
		if n < 0 {
			return
		}
		real, from = real[n:], p.end
	}
}

// learnAt learns the value of a placeholder, with which real begins and after which comes next, and returns how long it is
// in real; -1 where it is not found.
func (s *Scrubber) learnAt(placeholder string, real, next []byte) int {
	plain, form := placeholders.Split(placeholder)
	if form != "" {
		for _, k := range s.knownAs(Digits(placeholder)) {
			if in := placeholders.Disguise(k.value, form); bytes.HasPrefix(real, []byte(in)) {
				return len(in)
			}
		}
	}
	first, last := 1, min(len(real), maxLeak)
	if len(next) == 0 { // nothing follows
		first, last = len(real), min(len(real), maxShape)
	}
	for n := first; n <= last; n++ {
		if !bytes.HasPrefix(real[n:], next) {
			continue
		}
		if value, ok := placeholders.Undisguise(string(real[:n]), form); ok && s.key.mac([]byte(value))[:placeholders.HexLen] == Digits(plain) {
			s.AddAlias(plain, value)
			return n
		}
	}
	return -1
}

// knownAs lists what is known under the digits of a placeholder.
func (s *Scrubber) knownAs(digits string) (out []*known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.known {
		if Digits(k.written()) == digits {
			out = append(out, k)
		}
	}
	return out
}

// A Given is what stands in a text where a scrubbed form of its like has a placeholder.
type Given struct{ Placeholder, Value string }

// Align returns what stands in real where stored has placeholders, for a real that is stored but for these: a variable
// with another secret in it than was recorded. Of a placeholder with a form the value is what stands there without its
// disguise; where it is in none of that form it is left out. ok is false where the texts differ elsewhere.
func Align(stored, real string) (given []Given, ok bool) {
	type place struct{ start, end int }
	var places []place
	placeholders.Each([]byte(stored), func(start, end int) { places = append(places, place{start, end}) })
	from := 0
	for i, p := range places {
		rest, fits := strings.CutPrefix(real, stored[from:p.start])
		if !fits {
			return nil, false
		}
		n := len(rest) - len(stored[p.end:])
		if i+1 < len(places) {
			n = strings.Index(rest, stored[p.end:places[i+1].start])
		}
		if n <= 0 {
			return nil, false
		}
		plain, form := placeholders.Split(stored[p.start:p.end])
		if value, ok := placeholders.Undisguise(rest[:n], form); ok {
			given = append(given, Given{plain, value})
		}
		real, from = rest[n:], p.end
	}
	return given, real == stored[from:]
}
