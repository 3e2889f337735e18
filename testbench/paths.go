package testbench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// A file is one that a Config names.
type file struct {
	field, what, path string
	at                place
}

// checkPaths refuses to write over what the run reads, its program included, and two outputs at one path.
func (c *Config) checkPaths() error {
	outputs := named([]file{
		{field: "Emit", what: "tape", path: c.Emit}, {field: "Files.Diff", what: "diff", path: c.Files.Diff},
		{field: "LLM.Record", what: "recorded rules", path: c.LLM.Record},
		{field: "Processes.Record", what: "recorded process tape", path: c.Processes.Record},
	})
	if len(outputs) == 0 {
		return nil
	}
	taken := named([]file{
		{what: "program", path: c.Name}, {what: "rules", path: c.LLM.Fixture}, {what: "process tape", path: c.Processes.Tape},
		{what: "tape of MCP", path: c.MCP}, {what: "tape of the network", path: c.Net.Tape},
	})
	for i := range taken {
		taken[i].at = placeOf(taken[i].path)
	}
	for _, out := range outputs {
		if err := regular.Check(out.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &ConfigError{out.field, err}
		}
		out.at = placeOf(out.path)
		if i := slices.IndexFunc(taken, func(other file) bool { return other.at.is(out.at) }); i >= 0 {
			return &ConfigError{out.field, fmt.Errorf("it would write over %s, which is the run's %s: give another path", out.path, taken[i].what)}
		}
		taken = append(taken, out)
	}
	return nil
}

// named returns those that have a path, and uses the memory of all.
func named(all []file) []file {
	return slices.DeleteFunc(all, func(f file) bool { return f.path == "" })
}

// A place is a path and what stands there.
type place struct {
	path string
	st   fs.FileInfo // nil where nothing does, or nobody can tell
}

func placeOf(path string) place {
	st, _ := os.Stat(path) // of one that has none its name tells
	return place{path, st}
}

// is reports whether p and q are one file, or would be.
func (p place) is(q place) bool {
	if p.st != nil && q.st != nil {
		return os.SameFile(p.st, q.st)
	}
	if p.st != nil || q.st != nil {
		return false
	}
	a, errA := filepath.Abs(p.path)
	b, errB := filepath.Abs(q.path)
	return errA == nil && errB == nil && a == b
}
