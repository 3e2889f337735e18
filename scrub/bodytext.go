package scrub

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// A model and its tools say much in texts: commands, lists of variables, settings, headers. Most of a text speaks of something else,
// code of secrets among it, so a value counts for less there than as a member of JSON.

// texts looks at what names in the strings of a body say.
func (l *look) texts(b []byte) {
	if l.names.texts {
		l.assignments(b)
		l.flags(b)
	}
}

// headerLine looks at a line of a text with a colon at i: Cookie: session=… A name that is no header's has a hyphen at least.
func (l *look) headerLine(b []byte, i int) {
	if !l.names.texts || !mayEndName(b, i) {
		return
	}
	name := wordAt(b, i)
	if len(name) == 0 || bytes.IndexByte(name, '-') < 0 && !beginsHeader[name[0]|0x20] { // most are none, and of takes its time
		return
	}
	says := l.names.of(name)
	if says == saysNothing || says.isOfText() && bytes.IndexByte(name, '-') < 0 {
		return
	}
	start := blanks(b, i+1)
	value, whole := l.until(b, start, "\"'`\\\r\n")
	if whole && (!says.isOfText() || isToken(value) && looksMade(value)) {
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
		if !mayEndName(b, i) {
			continue
		}
		name := wordAt(b, i)
		if l.names.tools && l.names.saysInLine(name) {
			if value, whole := l.until(b, at, " \t\r\n\"'`\\;&|,<>"); whole && isSaid(string(name), value) {
				l.found = append(l.found, Named{string(name), value, Place{int64(l.from + at), int64(l.from + at + len(value)), string(name), value}})
			}
			continue
		}
		if !bytes.HasPrefix(name, []byte("--")) && !isVariable(string(name)) {
			continue
		}
		if says := l.names.of(name); says.isOfText() {
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
		if !mayEndName(b, at) || !beginsText(b, start) {
			continue
		}
		says := l.names.of(name)
		if !says.isOfText() {
			continue
		}
		if value, listed := nextInList(b, at); listed {
			l.listed(name, says, b, value)
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
	comma := blanks(b, i+1)
	if comma == len(b) || b[comma] != ',' {
		return 0, false
	}
	at = blanks(b, comma+1)
	return at, at < len(b) && b[at] == '"'
}

// listed takes the string at i, which is all that the flag before it has.
func (l *look) listed(name []byte, says nameSaying, b []byte, i int) {
	value, whole := l.until(b, i+1, `"`)
	if whole && !strings.HasPrefix(value, "--") && !isPathOf(string(name), value) {
		l.value(name, says, b, i)
	}
}

// assigned takes the value at i, which may be in quotation marks.
func (l *look) assigned(name []byte, says nameSaying, b []byte, i int) {
	ends := " \t\r\n\"'`\\;&|,"
	switch {
	case bytes.HasPrefix(b[i:], []byte(`\"`)):
		i, ends = i+2, "\\\"\r\n"
	case i < len(b) && b[i] == '\'':
		i, ends = i+1, "'\\\"\r\n"
	}
	value, whole := l.until(b, i, ends)
	if whole && says.isAssigned(string(name), value) {
		l.member(bytes.TrimLeft(name, "-"), says, value, i, i+len(value))
	}
}

// isAssigned tells whether a value of a text is a secret of a variable or of a flag. Code and words are none, and behind a flag stand more
// words than behind a variable.
func (s nameSaying) isAssigned(name, value string) bool {
	switch {
	case !isToken(value) || Ordinary(value) || isPathOf(name, value):
		return false
	case !isVariable(name) && !hasDigit([]byte(value)):
		return false
	}
	return s.isSecret(value)
}

// isOfText tells what names in texts say. What holds cookies or credentials does so as a header alone.
func (s nameSaying) isOfText() bool {
	return s != saysNothing && s != saysCookies && s != saysCredentials
}

// isPathOf tells whether a value is the path of a file.
func isPathOf(name, value string) bool {
	return namesPath(name, value) || strings.HasPrefix(value, "/") || strings.Contains(value, "/") && strings.Contains(value, ".")
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

// wordAt returns the name that ends before i and begins a text, a line or a word; nil where there is none. The escapes of JSON are none
// of it.
func wordAt(b []byte, i int) []byte {
	start := i
	for start > 0 && i-start < maxName && chars.Name[b[start-1]] {
		start--
	}
	if start > 0 && b[start-1] == '\\' && start < i && slices.Contains([]byte("nrt"), b[start]) {
		return b[start+1 : i]
	}
	if !beginsText(b, start) {
		return nil
	}
	return b[start:i]
}

// beginsText tells whether a text or a word begins at i.
func beginsText(b []byte, i int) bool {
	if i == 0 {
		return true
	}
	switch b[i-1] {
	case 'n', 'r', 't':
		return i > 1 && b[i-2] == '\\'
	case ' ', '\t', '\r', '\n', '"', '\'', '`', ';', '(', '|':
		return true
	}
	return false
}
