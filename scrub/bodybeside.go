package scrub

import "bytes"

// A beside is the name of a secret that is itself a value, as lists of variables, headers and fields have them:
//
//	{"name": "API_KEY", "value": "…"}
type beside struct {
	name []byte
	says nameSaying
	end  int // of the member in the body
}

// pair looks at a member whose string stands at i: at the name of another, or at what it is the name of. It returns where to go on.
func (l *look) pair(name, b []byte, i int) (end int) {
	switch string(name) {
	case "name", "key", "Name", "Key":
		return l.nameBeside(b, i)
	case "value", "Value":
		before := l.beside
		l.beside = beside{}
		if before.says != saysNothing && !bytes.ContainsAny(b[before.end:i], "{}[]") {
			return l.values(before.name, before.says, b, i)
		}
	}
	return i
}

// nameBeside keeps the string at i where it is the name of a secret.
func (l *look) nameBeside(b []byte, i int) (end int) {
	if l.beside = (beside{}); b[i] != '"' {
		return i
	}
	text := b[i+1 : min(len(b), i+2+maxName)]
	n := bytes.IndexByte(text, '"')
	if n < 0 {
		return i
	}
	if says := l.names.of(text[:n]); says != saysNothing {
		l.beside = beside{text[:n], says, i + n + 2}
	}
	return i + n + 2
}
