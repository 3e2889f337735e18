package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// maxNamedLine bounds, in bytes, a value that FindNamed looks at.
const maxNamedLine = 4 << 10

// FindNamed returns the secrets that names give away in lines for people, which are neither JSON nor a form: NAME=VALUE and
// NAME: VALUE of settings, of an environment, of a listed header, with quotation marks or without. Of a Cookie, each of its
// values. A value must look made by a machine, or the name must be that of a variable, in capitals, or end in api key, secret, token
// or password: lines speak of passwords more often than they have one. Of a member of JSON under one of toolNames any string is a secret.
func (s *Scrubber) FindNamed(b []byte) (found []Range) {
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
			if name := nameAt(b, at-1); len(name) > 0 && mayName(name) {
				found = s.namedAt(found, string(name), b, at)
			}
		}
	}
	return found
}

// mayName tells whether a name can be that of a secret. Of most it says no at once: in a secret's name is a word that begins with
// the first letters of one of KEY, TOKEN, SECRET, PASSWORD, SSHPASS, PWD, CREDENTIAL, AUTH, PAT, COOKIE.
func mayName(name []byte) bool {
	const firsts = 1<<('k'-'a') | 1<<('t'-'a') | 1<<('s'-'a') | 1<<('p'-'a') | 1<<('c'-'a') | 1 // and a
	for i := 0; i+2 < len(name); i++ {
		c := name[i]&0x1f - 1
		if uint32(firsts)>>c&1 == 0 {
			continue
		}
		switch uint32(name[i]|0x20)<<16 | uint32(name[i+1]|0x20)<<8 | uint32(name[i+2]|0x20) {
		case 'p'<<16 | 'a'<<8 | 't':
			if i+3 < len(name) && chars.IsAlnum(name[i+3]) {
				continue // of a path
			}
		case 'k'<<16 | 'e'<<8 | 'y', 't'<<16 | 'o'<<8 | 'k', 's'<<16 | 'e'<<8 | 'c', 'p'<<16 | 'a'<<8 | 's', 's'<<16 | 's'<<8 | 'h',
			'p'<<16 | 'w'<<8 | 'd', 'c'<<16 | 'r'<<8 | 'e', 'a'<<16 | 'u'<<8 | 't', 'c'<<16 | 'o'<<8 | 'o':
		default:
			continue
		}
		return isCookie(name) || nameSays(string(name)) != sayNothing || isTool(name)
	}
	return false
}

func isCookie(name []byte) bool {
	return bytes.EqualFold(name, []byte("cookie")) || bytes.EqualFold(name, []byte("set-cookie"))
}

// nameAt returns the name that ends before i, but for a blank and a quotation mark.
func nameAt(b []byte, i int) []byte {
	if i > 0 && b[i-1] == ' ' {
		i--
	}
	if i > 0 && (b[i-1] == '"' || b[i-1] == '\'') {
		i--
	}
	start := i
	for start > 0 && i-start < maxName && chars.Name[b[start-1]] {
		start--
	}
	return b[start:i]
}

// namedAt adds the secrets of a value that stands at i behind a name and a sign.
func (s *Scrubber) namedAt(found []Range, name string, b []byte, i int) []Range {
	isMember := i > 1 && (b[i-2] == '"' || b[i-2] == ' ' && i > 2 && b[i-3] == '"')
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '=') {
		i++
	}
	line := b[i:min(len(b), i+maxNamedLine)]
	if end := bytes.IndexAny(line, "\r\n"); end >= 0 {
		line = line[:end]
	}
	if isCookie([]byte(name)) {
		return s.cookiesAt(found, line, i)
	}
	ends := " \t,;\"'`&|<>"
	if isVariable(name) {
		ends = " \t\"'`"
	}
	value := firstValue(line, ends)
	from := i + bytes.Index(line, value)
	if n := schemeLen(string(line)); n > 0 {
		value = firstValue(line[n:], ends)
		from = i + n
	}
	isMember = isMember && len(value) > 0 && line[0] == '"' && isTool([]byte(name))
	if !isMember && (!s.NamesSecret(name, string(value)) || !s.saidOf(name, string(value))) {
		return found
	}
	return append(found, Range{Start: int64(from), End: int64(from + len(value)), Rule: placeholders.RuleName(name)})
}

// saidOf tells whether a value of a line is a secret, and no text about one.
func (s *Scrubber) saidOf(name, value string) bool {
	switch {
	case len(value) < minKnown, placeholders.Is(value), fromOutside.MatchString(value), reference.MatchString(value):
		return false
	case isVariable(name):
		return searchable(value) && !strings.ContainsAny(value, "()")
	case s.names.saysInLine([]byte(name)):
		return isSaid(name, value)
	}
	return looksMade(value) && !strings.ContainsAny(value, "()[]{}")
}

// saysInLine tells whether a name in small letters says in a line that a secret follows: one that ends in api key, secret, token or
// password.
func (n *secretNames) saysInLine(name []byte) bool {
	var buf [maxName]byte
	if len(name) > maxName || n.of(name) == saysNothing {
		return false
	}
	lower := flat(buf[:0], name)
	return bytes.HasSuffix(lower, []byte("apikey")) || bytes.HasSuffix(lower, []byte("secret")) || bytes.HasSuffix(lower, []byte("token")) ||
		bytes.HasSuffix(lower, []byte("password")) || bytes.HasSuffix(lower, []byte("passwd"))
}

// isSaid tells whether a value of 8 bytes or more behind such a name and a sign is a secret: no code, no words, no path and no reference. A
// number is the secret of a password alone.
func isSaid(name, value string) bool {
	switch {
	case len(value) < minKnown, placeholders.Is(value), fromOutside.MatchString(value), reference.MatchString(value),
		strings.ContainsAny(value, "()[]{}<>"), strings.Contains(value, "://"), isPathOf(name, value), isExample(value), filledUp([]byte(value)):
		return false
	case strings.Trim(value, "0123456789") == "":
		return strings.HasPrefix(strings.ToLower(name[max(0, len(name)-len("password")):]), "passw")
	case strings.ContainsAny(value, "_./-") && Ordinary(value): // decode_v2
		return false
	}
	return len(wordsIn(value)) == 0
}

// isVariable tells the name of a variable, in capitals.
func isVariable(name string) bool { return strings.ToUpper(name) == name }

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

// cookiesAt adds the values of cookies that are no settings.
func (s *Scrubber) cookiesAt(found []Range, line []byte, at int) []Range {
	for from := 0; from < len(line); {
		end := len(line)
		if i := bytes.IndexByte(line[from:], ';'); i >= 0 {
			end = from + i
		}
		if name, value, ok := bytes.Cut(line[from:end], []byte("=")); ok && len(value) >= minKnown && !Ordinary(string(value)) &&
			!bytes.EqualFold(bytes.TrimSpace(name), []byte("expires")) && bytes.IndexByte(value, '*') < 0 {
			found = append(found, Range{Start: int64(at + end - len(value)), End: int64(at + end), Rule: "cookie"})
		}
		from = end + 1
	}
	return found
}
