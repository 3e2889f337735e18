package screen

import (
	"strings"
	"unicode/utf8"
)

// keyNames are what terminals send for keys without a character, as xterm does.
var keyNames = []struct{ bytes, name string }{
	{"\x1b[200~", "PASTE["}, {"\x1b[201~", "]"}, {"\x1b[I", "FOCUS"}, {"\x1b[O", "BLUR"},
	{"\x1b[A", "UP"}, {"\x1b[B", "DOWN"}, {"\x1b[C", "RIGHT"}, {"\x1b[D", "LEFT"},
	{"\x1bOA", "UP"}, {"\x1bOB", "DOWN"}, {"\x1bOC", "RIGHT"}, {"\x1bOD", "LEFT"},
	{"\x1b[H", "HOME"}, {"\x1b[F", "END"}, {"\x1bOH", "HOME"}, {"\x1bOF", "END"},
	{"\x1b[2~", "INSERT"}, {"\x1b[3~", "DELETE"}, {"\x1b[5~", "PGUP"}, {"\x1b[6~", "PGDN"}, {"\x1b[Z", "BACKTAB"},
	{"\x1bOP", "F1"}, {"\x1bOQ", "F2"}, {"\x1bOR", "F3"}, {"\x1bOS", "F4"}, {"\x1b[15~", "F5"}, {"\x1b[17~", "F6"},
	{"\x1b[18~", "F7"}, {"\x1b[19~", "F8"}, {"\x1b[20~", "F9"}, {"\x1b[21~", "F10"}, {"\x1b[23~", "F11"}, {"\x1b[24~", "F12"},
	{"\r", "ENTER"}, {"\n", "^J"}, {"\t", "TAB"}, {"\x7f", "BACKSPACE"}, {"\x00", "^@"},
}

// KeyNames says in words what was typed: text as it stands, keys by their names, as in "ihello ESC :wq ENTER".
func KeyNames(keys []byte) string {
	var b strings.Builder
	text := false // what was written last is text
	for len(keys) > 0 {
		name, n := keyName(keys)
		if n > 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(name)
			keys, text = keys[n:], false
			continue
		}
		if !text && b.Len() > 0 {
			b.WriteByte(' ')
		}
		r, size := utf8.DecodeRune(keys)
		b.WriteRune(r)
		keys, text = keys[size:], true
	}
	return b.String()
}

// keyName returns the name of the key that keys begin with, and its length; 0 where that is a character.
func keyName(keys []byte) (string, int) {
	for i := range keyNames {
		if k := &keyNames[i]; strings.HasPrefix(string(keys[:min(len(keys), len(k.bytes))]), k.bytes) {
			return k.name, len(k.bytes)
		}
	}
	switch c := keys[0]; {
	case c == 0x1b && len(keys) > 2 && keys[1] == '[':
		return sequenceName(keys)
	case c == 0x1b:
		return "ESC", 1
	case c < 0x20:
		return "^" + string(rune(c+'@')), 1
	}
	return "", 0
}

// sequenceName names a control sequence that is no key of its own: a report of the mouse, an answer of the terminal.
func sequenceName(keys []byte) (string, int) {
	for i := 2; i < len(keys); i++ {
		c := keys[i]
		switch {
		case c >= 0x20 && c < 0x40:
			continue
		case c < 0x20 || c > 0x7e:
			return "ESC", 1
		}
		if keys[2] == '<' {
			return "MOUSE" + string(keys[3:i+1]), i + 1
		}
		return "ESC[" + string(keys[2:i+1]), i + 1
	}
	return "ESC", 1
}
