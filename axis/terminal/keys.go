package terminal

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// cursorKeys end in a letter, whether in CSI or, with application cursor keys, in SS3.
var cursorKeys = map[string]byte{"up": 'A', "down": 'B', "right": 'C', "left": 'D', "home": 'H', "end": 'F'}

// tildeKeys are CSI, a number and ~.
var tildeKeys = map[string]int{
	"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6,
	"f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
	"f13": 25, "f14": 26, "f15": 28, "f16": 29, "f17": 31, "f18": 32, "f19": 33, "f20": 34,
}

// ss3Keys are SS3 and a letter, and with modifiers in CSI.
var ss3Keys = map[string]byte{"f1": 'P', "f2": 'Q', "f3": 'R', "f4": 'S'}

// byteKeys are one byte.
var byteKeys = map[string]byte{"enter": '\r', "tab": '\t', "escape": 0x1b, "space": ' ', "backspace": 0x7f}

// sameKeys are other names of keys.
var sameKeys = map[string]string{
	"return": "enter", "esc": "escape", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown",
	"pgdown": "pagedown", "page-up": "pageup", "page-down": "pagedown", "bs": "backspace", "backtab": "shift-tab",
}

// ctrlKeys are the characters that make another byte with Ctrl than their lower five bits.
var ctrlKeys = map[byte]byte{'?': 0x7f, '/': 0x1f, '-': 0x1f, '2': 0, '3': 0x1b, '4': 0x1c, '5': 0x1d, '6': 0x1e, '7': 0x1f, '8': 0x7f}

// The modifiers, as xterm adds them up.
const (
	shiftKey = 1 << iota
	altKey
	ctrlKey
)

// KeyBytes returns what a terminal sends for a key: a character ("x", "é"), or one of enter, tab, escape, space, backspace, up,
// down, left, right, home, end, insert, delete, pageup, pagedown, f1 to f20, each after any of "ctrl-", "alt-" and "shift-".
// Letters may be upper case in names of more than one character. application is the terminal's mode of cursor keys (DECCKM).
func KeyBytes(name string, application bool) ([]byte, error) {
	key, mods := splitKey(name)
	if b, ok := cursorKeys[key]; ok {
		if application && mods == 0 {
			return []byte{0x1b, 'O', b}, nil
		}
		return letterKey(b, mods, '['), nil
	}
	if b, ok := ss3Keys[key]; ok {
		return letterKey(b, mods, 'O'), nil
	}
	if n, ok := tildeKeys[key]; ok {
		if mods == 0 {
			return fmt.Appendf(nil, "\x1b[%d~", n), nil
		}
		return fmt.Appendf(nil, "\x1b[%d;%d~", n, mods+1), nil
	}
	if key == "tab" && mods&shiftKey != 0 {
		return withAlt("\x1b[Z", mods), nil
	}
	if b, ok := byteKeys[key]; ok {
		key, mods = string(rune(b)), mods&^shiftKey
		if b == 0x7f && mods&ctrlKey != 0 {
			key, mods = "\b", mods&^ctrlKey
		}
	}
	return charKey(name, key, mods)
}

// splitKey takes the modifiers off a key's name.
func splitKey(name string) (key string, mods int) {
	key = name
	if utf8.RuneCountInString(name) > 1 {
		key = lowerName(name)
	}
	for {
		if other, ok := sameKeys[key]; ok {
			key = other
		}
		before, after, found := strings.Cut(key, "-")
		mod, ok := map[string]int{"shift": shiftKey, "alt": altKey, "meta": altKey, "ctrl": ctrlKey, "control": ctrlKey}[before]
		if !found || !ok || after == "" {
			return key, mods
		}
		key, mods = after, mods|mod
	}
}

// lowerName is a name in lower case, but for a character at its end: alt-X is another key than alt-x.
func lowerName(name string) string {
	at := strings.LastIndexByte(name, '-') + 1
	if at == 0 || utf8.RuneCountInString(name[at:]) != 1 {
		return strings.ToLower(name)
	}
	return strings.ToLower(name[:at]) + name[at:]
}

// letterKey is CSI or SS3 with a letter.
func letterKey(b byte, mods int, introducer byte) []byte {
	if mods == 0 {
		return []byte{0x1b, introducer, b}
	}
	return append(strconv.AppendInt([]byte("\x1b[1;"), int64(mods+1), 10), b)
}

// withAlt is text after the Escape that Alt is.
func withAlt(text string, mods int) []byte {
	if mods&altKey != 0 {
		text = "\x1b" + text
	}
	return []byte(text)
}

// charKey is a character with modifiers.
func charKey(name, key string, mods int) ([]byte, error) {
	if utf8.RuneCountInString(key) != 1 {
		return nil, fmt.Errorf("no key has the name %q: want a character or enter, tab, escape, space, backspace, up, down, left, right, "+
			"home, end, insert, delete, pageup, pagedown, f1 to f20, after any of ctrl-, alt-, shift-", name)
	}
	if mods&shiftKey != 0 {
		key = strings.ToUpper(key)
	}
	if mods&ctrlKey == 0 {
		return withAlt(key, mods), nil
	}
	b, ok := ctrlByte(key[0])
	if !ok || len(key) != 1 {
		return nil, fmt.Errorf("a terminal has no key %q: with ctrl- go a to z, space, @ [ \\ ] ^ _ ? / and 2 to 8", name)
	}
	return withAlt(string([]byte{b}), mods), nil
}

// ctrlByte is the byte that a character makes with Ctrl.
func ctrlByte(c byte) (byte, bool) {
	if b, ok := ctrlKeys[c]; ok {
		return b, true
	}
	switch {
	case c >= 'a' && c <= 'z', c >= '@' && c <= '_', c == ' ':
		return c & 0x1f, true
	case c == '\r', c == '\t', c == 0x1b:
		return c, true
	}
	return 0, false
}

// keyNames are the names of what keys send, but for characters.
var keyNames = sync.OnceValue(func() map[string]string {
	plain := []string{"enter", "tab", "escape", "backspace", "shift-tab", "alt-enter", "alt-backspace", "ctrl-space"}
	cursor := slices.AppendSeq(slices.AppendSeq(slices.Collect(maps.Keys(cursorKeys)), maps.Keys(ss3Keys)), maps.Keys(tildeKeys))
	for c := 'a'; c <= 'z'; c++ {
		plain = append(plain, "ctrl-"+string(c), "alt-"+string(c))
	}
	for _, c := range `\]^_` {
		plain = append(plain, "ctrl-"+string(c))
	}
	out := make(map[string]string)
	add := func(name string) {
		for _, application := range []bool{false, true} {
			if p, err := KeyBytes(name, application); err == nil && out[string(p)] == "" {
				out[string(p)] = name
			}
		}
	}
	for _, name := range plain { // first: ctrl-m is enter
		add(name)
	}
	for _, mods := range []string{"", "shift-", "alt-", "ctrl-", "ctrl-shift-", "ctrl-alt-"} {
		for _, name := range cursor {
			if mods == "" || name != "f3" { // which is then what a terminal answers to where the cursor is
				add(mods + name)
			}
		}
	}
	return out
})

// longestKey is the most bytes that a key with a name sends.
const longestKey = 8

// KeyName returns the name of the key that sends p, "" where p is text, several keys, or none that has a name.
func KeyName(p []byte) string {
	if len(p) > longestKey {
		return ""
	}
	return keyNames()[string(p)]
}
