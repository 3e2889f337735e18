package main

import (
	"strings"
	"testing"
)

// TestTypedFor: what a word leads to is there, and no word is a command itself.
func TestTypedFor(t *testing.T) {
	root := newRootCommand(streams{}, "")
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

// TestCalledBy: a command is known by the name under which it is made, and made alone it is the same.
func TestCalledBy(t *testing.T) {
	all := newRootCommand(streams{}, "")
	for _, g := range helpGroups {
		for _, m := range g.commands {
			c, _, err := newRootCommand(streams{}, m.name).Find([]string{m.name})
			whole, _, _ := all.Find([]string{m.name})
			if err != nil || c.Name() != m.name || c.UsageString() != whole.UsageString() || c.Long != whole.Long || c.GroupID != whole.GroupID {
				t.Errorf("%s: %v, %v", m.name, c, err)
			}
		}
	}
	for line, want := range map[string]string{"": "", "record -- true": "record", "man x": "", "help record": "", "--help": "", "nothing": ""} {
		if got := calledBy(strings.Fields(line)); got != want {
			t.Errorf("%q calls %q, want %q", line, got, want)
		}
	}
}
