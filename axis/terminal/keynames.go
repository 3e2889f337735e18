package terminal

import "sync"

// keyNames are the names of what keys send, but for characters.
var keyNames = sync.OnceValue(func() map[string]string {
	plain := []string{"enter", "tab", "escape", "backspace", "shift-tab", "alt-enter", "alt-backspace", "ctrl-space"}
	var cursor []string
	for name := range cursorKeys {
		cursor = append(cursor, name)
	}
	for name := range ss3Keys {
		cursor = append(cursor, name)
	}
	for name := range tildeKeys {
		cursor = append(cursor, name)
	}
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
