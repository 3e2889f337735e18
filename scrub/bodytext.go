package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// A model and its tools say much in texts: commands, lists of variables, settings, headers. Most of a text speaks of something else,
// code of secrets among it, so a value counts for less there than as a member of JSON.

// maxNamedLine bounds, in bytes, a value in a line.
const maxNamedLine = 4 << 10

// headerLine looks at a line of a text with a colon at i: Cookie: session=… A name that is no header's has a hyphen at least.
func (l *look) headerLine(b []byte, i int) {
	if !l.names.General() || !names.MayEnd(b, i) {
		return
	}
	name := wordAt(b, i)
	if !names.MayBeHeader(name) { // most are none, and Of takes its time
		return
	}
	says := l.names.Of(name)
	if says == names.Nothing || says.IsOfText() && bytes.IndexByte(name, '-') < 0 {
		return
	}
	start := blanks(b, i+1)
	value, whole := l.until(b, start, "\"'`\\\r\n")
	if whole && (!says.IsOfText() || names.IsToken(value) && names.LooksMade(value)) {
		l.member(name, says, value, start, start+len(value))
	}
}

// assignments looks at each NAME=VALUE and --name=VALUE that begins a word: of a list of variables, of a command. A name in small letters
// is one of code and of prose too often.
func (l *look) assignments(b []byte) {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '=')
		if i < 0 {
			return
		}
		i += at
		at = i + 1
		if !names.MayEnd(b, i) {
			continue
		}
		name := wordAt(b, i)
		if l.tool && l.names.SaysInLine(name) {
			if value, whole := l.until(b, at, " \t\r\n\"'`\\;&|,<>"); whole && names.IsSaid(string(name), value) {
				l.found = append(l.found, Named{string(name), value, Place{int64(l.from + at), int64(l.from + at + len(value)), string(name), value}})
			}
			continue
		}
		if !bytes.HasPrefix(name, []byte("--")) && !names.IsVariable(string(name)) {
			continue
		}
		if says := l.names.Of(name); says.IsOfText() {
			l.assigned(name, says, b, at)
		}
	}
}

// flags looks at each --name with a value behind it, in a command or as the next string of a list.
func (l *look) flags(b []byte) {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte("--"))
		if i < 0 {
			return
		}
		start := at + i
		at = start + 2
		for at < len(b) && (chars.Name[b[at]] || b[at] == '-') {
			at++
		}
		name := b[start+2 : at]
		if !names.MayEnd(b, at) || !beginsText(b, start) {
			continue
		}
		says := l.names.Of(name)
		if !says.IsOfText() {
			continue
		}
		if value, listed := nextInList(b, at); listed {
			text, whole := l.until(b, value+1, `"`)
			if whole && !strings.HasPrefix(text, "--") && !names.IsPath(string(name), text) {
				l.value(name, says, b, value)
			}
		} else if value = blanks(b, at); value > at && value < len(b) && b[value] != '-' {
			l.assigned(b[start:at], says, b, value)
		}
	}
}

// nextInList returns where the string begins that follows one which ends at i.
func nextInList(b []byte, i int) (at int, ok bool) {
	if i >= len(b) || b[i] != '"' {
		return 0, false
	}
	if i = blanks(b, i+1); i == len(b) || b[i] != ',' {
		return 0, false
	}
	at = blanks(b, i+1)
	return at, at < len(b) && b[at] == '"'
}

// assigned takes the value at i, which may be in quotation marks.
func (l *look) assigned(name []byte, says names.Saying, b []byte, i int) {
	ends := " \t\r\n\"'`\\;&|,"
	switch {
	case bytes.HasPrefix(b[i:], []byte(`\"`)):
		i, ends = i+2, "\\\"\r\n"
	case i < len(b) && b[i] == '\'':
		i, ends = i+1, "'\\\"\r\n"
	}
	value, whole := l.until(b, i, ends)
	if whole && says.IsAssigned(string(name), value) {
		l.member(bytes.TrimLeft(name, "-"), says, value, i, i+len(value))
	}
}

// until returns what stands from i to one of ends. whole is false where it is too long, or where more of it may follow.
func (l *look) until(b []byte, i int, ends string) (value string, whole bool) {
	text := b[min(i, len(b)):min(len(b), i+maxNamedLine)]
	n := bytes.IndexAny(text, ends)
	if n < 0 {
		return string(text), !l.piece && len(text) < maxNamedLine
	}
	return string(text[:n]), true
}

// nameAt returns the name that ends before i.
func nameAt(b []byte, i int) []byte {
	start := i
	for start > 0 && i-start < names.MaxName && chars.Name[b[start-1]] {
		start--
	}
	return b[start:i]
}

// wordAt is nameAt for one that begins a text, a line or a word; nil where there is none. The escapes of JSON are none of it.
func wordAt(b []byte, i int) []byte {
	name := nameAt(b, i)
	start := i - len(name)
	if start > 0 && b[start-1] == '\\' && start < i && strings.IndexByte("nrt", b[start]) >= 0 {
		return name[1:]
	}
	if !beginsText(b, start) {
		return nil
	}
	return name
}

// beginsText tells whether a text or a word begins at i.
func beginsText(b []byte, i int) bool {
	if i == 0 {
		return true
	}
	if strings.IndexByte("nrt", b[i-1]) >= 0 {
		return i > 1 && b[i-2] == '\\'
	}
	return strings.IndexByte(" \t\r\n\"'`;(|", b[i-1]) >= 0
}

// findNamed returns the secrets that names give away in lines for people (see Scrubber.FindNamed), where isSecret says so of a name and a
// value.
func findNamed(b []byte, isSecret func(name, value string) bool) (found []Range) {
	for _, sign := range []byte("=:") {
		for at := 0; ; {
			i := bytes.IndexByte(b[at:], sign)
			if i < 0 {
				break
			}
			at += i + 1
			if sign == ':' && at > 1 && chars.IsDigit(b[at-2]) && at < len(b) && chars.IsDigit(b[at]) { // a time, and the like
				continue
			}
			end := at - 1
			if end > 0 && b[end-1] == ' ' {
				end--
			}
			isMember := end > 0 && b[end-1] == '"'
			if isMember || end > 0 && b[end-1] == '\'' {
				end--
			}
			if name := nameAt(b, end); len(name) > 0 && names.MayBeIn(name) {
				found = namedAt(found, string(name), isMember, b, at, isSecret)
			}
		}
	}
	return found
}

// namedAt adds the secrets of a value that stands at i behind a name and a sign.
func namedAt(found []Range, name string, isMember bool, b []byte, i int, isSecret func(name, value string) bool) []Range {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '=') {
		i++
	}
	line := b[i:min(len(b), i+maxNamedLine)]
	if end := bytes.IndexAny(line, "\r\n"); end >= 0 {
		line = line[:end]
	}
	if names.IsCookie([]byte(name)) {
		return cookiesIn(found, line, i)
	}
	ends := " \t,;\"'`&|<>"
	if names.IsVariable(name) {
		ends = " \t\"'`"
	}
	value := firstValue(line, ends)
	from := i + bytes.Index(line, value)
	if n := names.SchemeLen(string(line)); n > 0 {
		value = firstValue(line[n:], ends)
		from = i + n
	}
	isMember = isMember && len(value) > 0 && line[0] == '"' && names.IsTool([]byte(name))
	if !isMember && !isSecret(name, string(value)) {
		return found
	}
	return append(found, Range{Start: int64(from), End: int64(from + len(value)), Rule: placeholders.RuleName(name)})
}

// firstValue returns what stands in quotation marks at the beginning of a line, or what stands there before one of ends.
func firstValue(line []byte, ends string) []byte {
	if len(line) > 1 && (line[0] == '"' || line[0] == '\'') {
		if end := bytes.IndexByte(line[1:], line[0]); end >= 0 {
			return line[1 : 1+end]
		}
		line = line[1:]
	}
	if end := bytes.IndexAny(line, ends); end >= 0 {
		line = line[:end]
	}
	return line
}

// cookiesIn adds the values of cookies that are no settings.
func cookiesIn(found []Range, line []byte, at int) []Range {
	for _, pair := range bytes.SplitAfter(line, []byte(";")) {
		at += len(pair)
		end := at - len(pair) + len(bytes.TrimSuffix(pair, []byte(";")))
		name, value, ok := bytes.Cut(bytes.TrimSuffix(pair, []byte(";")), []byte("="))
		if ok && len(value) >= names.MinKnown && !names.Ordinary(string(value)) &&
			!bytes.EqualFold(bytes.TrimSpace(name), []byte("expires")) && bytes.IndexByte(value, '*') < 0 {
			found = append(found, Range{Start: int64(end - len(value)), End: int64(end), Rule: "cookie"})
		}
	}
	return found
}
