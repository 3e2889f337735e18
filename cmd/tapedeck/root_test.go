package main

import (
	"strings"
	"testing"
)

// TestTypedFor: what a word leads to is there, and no word is a command itself.
func TestTypedFor(t *testing.T) {
	root := newRootCommand(streams{})
	for word, commands := range typedFor {
		if c, _, err := root.Find([]string{word}); err == nil && c != root {
			t.Errorf("%s is a command", word)
		}
		for _, path := range commands {
			args := strings.Fields(path)
			c, rest, err := root.Find(args)
			if err != nil || c == root {
				t.Errorf("%s: %s is no command", word, path)
				continue
			}
			for _, flag := range rest {
				if c.Flag(strings.TrimPrefix(flag, "--")) == nil {
					t.Errorf("%s: %s has no such flag", word, path)
				}
			}
		}
	}
}
