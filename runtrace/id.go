package runtrace

import (
	"fmt"
	"strconv"
)

// An ID names a run: whose it is, and which.
type ID struct{ Agent, Run string }

func (id ID) String() string { return id.Agent + "/" + id.Run }

// Check reports the first of both names that is none. The error is a *NameError.
func (id ID) Check() error {
	if err := CheckName("agent_id", id.Agent); err != nil {
		return err
	}
	return CheckName("run_id", id.Run)
}

// A NameError says that an id is not a plain name.
type NameError struct {
	What string // the key that held it: agent_id, run_id
	Name string // what came
}

func (e *NameError) Error() string {
	const form = "expected a letter or digit, then at most 127 of letters, digits, '.', '_', ':', '-'"
	shown := e.Name
	if len(shown) > MaxName {
		shown = shown[:MaxName]
	}
	return fmt.Sprintf("%s is not a plain name: %s, got %s (%d bytes)", e.What, form, strconv.QuoteToASCII(shown), len(e.Name))
}

// CheckName reports whether s may name an agent or a run, and so a directory or a file: [A-Za-z0-9][A-Za-z0-9._:-]{0,127}, ASCII
// alone. What is the key that held it. The error is a *NameError.
func CheckName(what, s string) error {
	ok := len(s) > 0 && len(s) <= MaxName && alphanumeric(s[0])
	for i := 1; ok && i < len(s); i++ {
		c := s[i]
		ok = alphanumeric(c) || c == '.' || c == '_' || c == ':' || c == '-'
	}
	if !ok {
		return &NameError{what, s}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
