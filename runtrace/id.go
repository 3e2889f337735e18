package runtrace

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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

// fileEnd is how the name of a run's file ends.
const fileEnd = ".jsonl"

// File is where the trace of a run stands below the directory runs of a daemon's data: AGENT/RUN.jsonl. The id must have passed
// Check: nothing else ever becomes a path.
func (id ID) File() string {
	return filepath.Join(fileName(id.Agent, runtime.GOOS), fileName(id.Run, runtime.GOOS)+fileEnd)
}

// FileID is the ID whose File has that directory's and that file's name. It reports false where there is none.
func FileID(dir, file string) (ID, bool) {
	run, ok := strings.CutSuffix(file, fileEnd)
	id := ID{Agent: nameOf(dir, runtime.GOOS), Run: nameOf(run, runtime.GOOS)}
	return id, ok && id.Check() == nil
}

// colon is how a file has the one character of names that Windows has another use for.
const colon = "%3A"

func fileName(name, system string) string {
	if system == "windows" {
		return strings.ReplaceAll(name, ":", colon)
	}
	return name
}

func nameOf(file, system string) string {
	if system == "windows" {
		return strings.ReplaceAll(file, colon, ":")
	}
	return file
}
