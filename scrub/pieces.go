package scrub

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// A piece is a secret in the value of a variable whose name says that it holds one: all of it but the blanks and quotation
// marks around it, what stands behind the name of a scheme, one of a list, or the value of a member of JSON. What is around
// the pieces stays, so that a dummy of the variable can be taken apart as the value was.
type piece struct {
	start, end int
	value      string // without its escapes
	at         string // which of the pieces it is: the same for that of another value
}

// piecesOf returns the secrets of a variable's value, in order; none where it is blank.
func piecesOf(name, value string) []piece {
	core := trimQuotes(value)
	if core == "" {
		return nil
	}
	start := strings.Index(value, core)
	found := []piece{{start: 0, end: len(core), value: core}}
	if members, ok := jsonPieces(core); ok {
		found = members
	} else if n := names.SchemeLen(core); n > 0 {
		found = []piece{{start: n, end: len(core), value: core[n:]}}
	} else if parts, ok := listPieces(name, core); ok {
		found = parts
	}
	for i := range found {
		found[i].start += start
		found[i].end += start
	}
	return found
}

// listPieces returns the parts of a list. A name in the plural says that it may be one; under another each part must be as long
// as keys are and look made by a machine, for a password may have a comma in it, and more so a blank.
func listPieces(name, v string) (found []piece, ok bool) {
	const least = 16 // bytes
	signs, start, made, plural := ",;", 0, true, names.IsPlural(name)
	if plural {
		signs = ",; \t\r\n"
	}
	for end := 0; end <= len(v); end++ {
		if end < len(v) && strings.IndexByte(signs, v[end]) < 0 {
			continue
		}
		if part := v[start:end]; part != "" {
			found = append(found, piece{start: start, end: end, value: part, at: strconv.Itoa(len(found))})
			made = made && len(part) >= least && names.LooksMade(part)
		}
		start = end + 1
	}
	return found, len(found) > 1 && (plural || made) && !strings.Contains(v, pemBegin)
}

// jsonPieces returns the strings of an object or a list of JSON that are secrets; ok is false where there is none, and where
// another value than a string has a name that says so: then all of it is one secret.
func jsonPieces(v string) (found []piece, ok bool) {
	if v[0] != '{' && v[0] != '[' || !json.Valid([]byte(v)) {
		return nil, false
	}
	m := memberPieces{}
	m.Reset([]byte(v))
	m.value("", "")
	return m.found, len(m.found) > 0 && !m.whole
}

// A memberPieces walks through JSON.
type memberPieces struct {
	jsonscan.Scanner
	found []piece
	whole bool // a number has a name that says so
}

// value looks at the value that comes next, which stands at a path. A list's values have its name.
func (m *memberPieces) value(name, path string) {
	switch c := m.Peek(); c {
	case '{':
		for m.Begin(c); m.More('}'); {
			key := string(m.Key())
			m.value(key, path+"/"+key)
		}
	case '[':
		m.Begin(c)
		for n := 0; m.More(']'); n++ {
			m.value(name, path+"#"+strconv.Itoa(n))
		}
	case '"':
		start := m.Offset()
		if text := m.Text(); names.MemberOpens(name, text) {
			m.found = append(m.found, piece{start: start + 1, end: m.Offset() - 1, value: text, at: path})
		}
	default:
		m.Skip()
		m.whole = m.whole || (c == '-' || chars.IsDigit(c)) && names.SaySecret(name)
	}
}

// keyLines are the lines of a private key: programs print and send them one by one.
func keyLines(value string) (lines []string) {
	const most, shortest = 128, 32 // lines, and bytes of one
	if _, ok := pemLabelOf(strings.TrimSpace(value)); !ok {
		return nil
	}
	for line := range strings.FieldsFuncSeq(strings.ReplaceAll(value, `\n`, "\n"), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(line) >= shortest && !strings.Contains(line, "-----") && len(lines) < most {
			lines = append(lines, line)
		}
	}
	return lines
}

// Align returns what stands in real where stored has placeholders, for a real that is stored but for these: a variable
// with another secret in it than was recorded. Of a placeholder with a form the value is what stands there without its
// disguise; where it is in none of that form it is left out. ok is false where the texts differ elsewhere.
func Align(stored, real string) (given []Given, ok bool) {
	ok = align(stored, real, func(placeholder, rest, next string, last bool) int {
		n := strings.Index(rest, next)
		if last {
			n = len(rest) - len(next)
		}
		plain, form := placeholders.Split(placeholder)
		if n > 0 {
			if value, ok := placeholders.Undisguise(rest[:n], form); ok {
				given = append(given, Given{plain, value})
			}
		}
		return n
	})
	if !ok {
		return nil, false
	}
	return given, true
}

// align calls at for each placeholder of stored, with what of real begins where it stands and what of stored follows it up to the next
// one, where it is not the last.
// It returns how long in real that is for which the placeholder stands; 0 or less where that is not known, which ends it. ok is false
// then, and where the texts differ elsewhere.
func align(stored, real string, at func(placeholder, rest, next string, last bool) int) (ok bool) {
	type place struct{ start, end int }
	var places []place
	placeholders.Each([]byte(stored), func(start, end int) { places = append(places, place{start, end}) })
	from := 0
	for i, p := range places {
		rest, fits := strings.CutPrefix(real, stored[from:p.start])
		if !fits {
			return false
		}
		next, last := stored[p.end:], i+1 == len(places)
		if !last {
			next = stored[p.end:places[i+1].start]
		}
		n := at(stored[p.start:p.end], rest, next, last)
		if n <= 0 {
			return false
		}
		real, from = rest[n:], p.end
	}
	return real == stored[from:]
}

// Paired is Align for a variable whose name says that it is a secret, and whose value differs from the stored one in more than
// its secrets: it pairs members of JSON by their names, parts of a list by their order. A secret of real that stored has not
// is given with no placeholder. ok is false where none of them fit.
func Paired(name, stored, real string) (given []Given, ok bool) {
	was := make(map[string]string)
	for _, p := range piecesOf(name, stored) {
		if placeholders.Is(p.value) {
			was[p.at], _ = placeholders.Split(p.value)
		}
	}
	for _, p := range piecesOf(name, real) {
		ok = ok || was[p.at] != ""
		given = append(given, Given{was[p.at], p.value})
	}
	return given, ok
}

// Digits returns the hex digits of a placeholder: two placeholders with the same ones stand for the same value.
func Digits(placeholder string) string { return placeholders.Digits(placeholder) }

// Renumber replaces each placeholder of b by td_#<n>, where n counts the different secrets by their first appearance in b,
// from 1. So neither the project's key, nor the secret, nor the rule that found it first matters to a digest of what it
// returns, while which places held the same secret still does. It returns b itself where nothing is to be replaced, and
// never writes to b.
func Renumber(b []byte) []byte { return placeholders.Renumber(b, nil) }

// Fill returns b with each placeholder replaced by what valueOf says it stands for, in the form in which it stood.
// valueOf is given the digits of the placeholder, which are of the value alone; where it reports false the placeholder
// stays. Fill returns b itself where nothing is to be replaced, and never writes to b.
//
// In base64 a value of another length than the recorded one shifts what comes after it in the same group: the text around
// it then decodes to something else.
func Fill(b []byte, valueOf func(digits string) (value string, ok bool)) []byte {
	return placeholders.Replace(b, func(placeholder string) (string, bool) {
		value, ok := valueOf(Digits(placeholder))
		if !ok {
			return "", false
		}
		_, form := placeholders.Split(placeholder)
		return placeholders.Disguise(value, form), true
	})
}

// A revealing holds back what may be the beginning of a placeholder.
type revealing struct {
	fill func(b []byte) []byte
	r    io.Reader
	held []byte // read and not looked through
	out  []byte // to be given
	err  error
}

func (v *revealing) Read(p []byte) (int, error) {
	for len(v.out) == 0 && v.err == nil {
		v.readMore()
	}
	n := copy(p, v.out)
	if v.out = v.out[n:]; n == 0 && len(p) > 0 {
		return 0, v.err
	}
	return n, nil
}

func (v *revealing) readMore() {
	buf := make([]byte, 32<<10)
	n, err := v.r.Read(buf)
	v.held, v.err = append(v.held, buf[:n]...), err
	cut := len(v.held)
	if err == nil {
		cut = placeholders.Cut(v.held)
	}
	v.out = v.fill(bytes.Clone(v.held[:cut]))
	v.held = append(v.held[:0], v.held[cut:]...)
}
