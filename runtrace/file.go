package runtrace

import (
	"path/filepath"
	"runtime"
	"strings"
)

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
