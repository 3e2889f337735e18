package check

import (
	"strings"
	"unicode/utf8"
)

// maxKeySequence is how long a key's sequence may be, in bytes.
const maxKeySequence = 64

// What terminals send for keys, besides control characters: the final byte of CSI or SS3, and the number of CSI n ~.
var (
	finalKeys = map[byte]string{'A': "up", 'B': "down", 'C': "right", 'D': "left", 'H': "home", 'F': "end", 'P': "f1", 'Q': "f2",
		'R': "f3", 'S': "f4", 'Z': "shift-tab", 'I': "focus-in", 'O': "focus-out"}
	tildeKeys = map[string]string{"1": "home", "2": "insert", "3": "delete", "4": "end", "5": "pageup", "6": "pagedown", "7": "home",
		"8": "end", "11": "f1", "12": "f2", "13": "f3", "14": "f4", "15": "f5", "17": "f6", "18": "f7", "19": "f8", "20": "f9",
		"21": "f10", "23": "f11", "24": "f12", "25": "f13", "26": "f14", "28": "f15", "29": "f16", "31": "f17", "32": "f18",
		"33": "f19", "34": "f20"}
	controlKeys = map[byte]string{'\r': "enter", '\n': "ctrl-j", '\t': "tab", 0x7f: "backspace", 0x1b: "escape", ' ': "space",
		0: "ctrl-@"}
	// As xterm adds them up: 1 and 1 for Shift, 2 for Alt, 4 for Ctrl.
	modifiers = map[string]string{"2": "shift-", "3": "alt-", "4": "alt-shift-", "5": "ctrl-", "6": "ctrl-shift-", "7": "ctrl-alt-",
		"8": "ctrl-alt-shift-"}
	// Other names of keys.
	sameKeys = map[string]string{"esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "page-up": "pageup",
		"page-down": "pagedown", "pgup": "pageup", "pgdn": "pagedown", "backtab": "shift-tab", "ctrl-i": "tab", "ctrl-m": "enter",
		"ctrl-[": "escape", "ctrl-space": "ctrl-@"}
)

// The marks of bracketed paste.
const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// A keyReader takes typed bytes apart into keys. A paste is one key; what it holds goes to paste.
type keyReader struct {
	open  []byte // of a sequence that is not whole
	in    bool   // within a paste
	key   func(name string)
	paste func(part []byte, end bool) // the content, in pieces
}

// read takes the bytes of one event.
func (r *keyReader) read(b []byte) {
	b = append(r.open, b...)
	r.open = nil
	for len(b) > 0 {
		n := r.next(b)
		if n == 0 {
			r.open = append([]byte(nil), b[:min(len(b), maxKeySequence)]...)
			return
		}
		b = b[n:]
	}
}

// next takes one key and returns its bytes, 0 where it is not whole.
func (r *keyReader) next(b []byte) int {
	if r.in {
		return r.pasted(b)
	}
	if b[0] == 0x1b && len(b) > 1 {
		return r.sequence(b)
	}
	if name := controlKeys[b[0]]; name != "" {
		r.key(name)
		return 1
	}
	if b[0] < 0x20 {
		r.key("ctrl-" + strings.ToLower(string(rune(b[0]|0x40))))
		return 1
	}
	if !utf8.FullRune(b) {
		return 0
	}
	_, n := utf8.DecodeRune(b)
	r.key(string(b[:n]))
	return n
}

// pasted passes on what is surely not the end's mark.
func (r *keyReader) pasted(b []byte) int {
	i := strings.Index(string(b), pasteEnd)
	if i >= 0 {
		r.in = false
		r.paste(b[:i], true)
		return i + len(pasteEnd)
	}
	hold := 0
	for n := min(len(b), len(pasteEnd)-1); n > 0; n-- {
		if strings.HasSuffix(string(b), pasteEnd[:n]) {
			hold = n
			break
		}
	}
	r.paste(b[:len(b)-hold], false)
	return len(b) - hold
}

func (r *keyReader) sequence(b []byte) int {
	switch {
	case b[1] == '[':
		return r.csi(b)
	case b[1] == 'O' && len(b) > 2:
		if name := finalKeys[b[2]]; name != "" {
			r.key(name)
			return 3
		}
	case b[1] == 0x1b:
		r.key("escape")
		return 1
	}
	if !utf8.FullRune(b[1:]) {
		return 0
	}
	_, n := utf8.DecodeRune(b[1:])
	r.key("alt-" + string(b[1:1+n]))
	return 1 + n
}

func (r *keyReader) csi(b []byte) int {
	end := 2
	for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
		end++
	}
	switch {
	case end == len(b) && end < maxKeySequence:
		return 0
	case end == len(b):
		r.key("escape")
		return 1
	}
	parameters, final := string(b[2:end]), b[end]
	if final == 'M' && parameters == "" { // the old mouse report: three more bytes
		if len(b) < end+4 {
			return 0
		}
		r.key("mouse")
		return end + 4
	}
	r.named(parameters, final)
	return end + 1
}

func (r *keyReader) named(parameters string, final byte) {
	number, modifier, _ := strings.Cut(parameters, ";")
	switch {
	case parameters == "200" && final == '~':
		r.in = true
		r.key("paste")
	case strings.HasPrefix(parameters, "<"):
		r.key("mouse")
	case final == '~' && tildeKeys[number] != "":
		r.key(modifiers[modifier] + tildeKeys[number])
	case finalKeys[final] != "":
		r.key(modifiers[modifier] + finalKeys[final])
	default:
		r.key("\x1b[" + parameters + string(rune(final)))
	}
}

// keyName returns the name that a keyReader has for a key.
func keyName(s string) string {
	if utf8.RuneCountInString(s) == 1 {
		if s == " " {
			return "space"
		}
		return s
	}
	if name, ok := sameKeys[s]; ok {
		return name
	}
	return s
}

// hasKey tells whether the input e has the key, by the recorder's word or by its bytes.
func hasKey(e *event, key string) bool {
	key = keyName(key)
	if keyName(e.key) == key {
		return true
	}
	found := false
	r := keyReader{key: func(name string) { found = found || name == key }, paste: func([]byte, bool) {}}
	r.read(e.bytes)
	return found
}
