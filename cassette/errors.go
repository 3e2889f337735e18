package cassette

import (
	"errors"
	"fmt"
)

// A refusal is one of the errors below, by its short name and for people.
type refusal struct{ code, text string }

func (r *refusal) Error() string { return r.text }

// What a reader refuses. Open returns each of them wrapped, with the file, the line and both sides where there are two; Code
// gives its short name.
var (
	ErrNoManifest   error = &refusal{"unfinished", "no manifest: the recording is not finished"}
	ErrMissingFile  error = &refusal{"missing-file", "a required file is missing"}
	ErrVersion      error = &refusal{"version", "a version of the format that is not known here"}
	ErrNoID         error = &refusal{"no-id", "no id"}
	ErrNoDigest     error = &refusal{"no-digest", "no content digest"}
	ErrDigest       error = &refusal{"digest", "the content digest does not match output.raw"}
	ErrChunkDigest  error = &refusal{"chunk-digest", "a chunk's digest does not match its bytes"}
	ErrChunkRange   error = &refusal{"chunk-range", "a chunk's range is wrong"}
	ErrSequence     error = &refusal{"sequence", "seq has a gap or goes back"}
	ErrTime         error = &refusal{"time", "t_ms goes back"}
	ErrFeature      error = &refusal{"feature", "a required feature is not known here"}
	ErrNoEmulator   error = &refusal{"no-emulator", "no emulator"}
	ErrResolution   error = &refusal{"resolution", "resolution_ms is not above 0"}
	ErrBadJSON      error = &refusal{"bad-json", "not the JSON that must stand here"}
	ErrTooLong      error = &refusal{"too-long", "longer than a reader takes"}
	ErrNotBound     error = &refusal{"not-bound", "another cassette than the expected one"}
	ErrEmulator     error = &refusal{"emulator", "another emulator than the required one"}
	ErrNotDirectory error = &refusal{"not-a-directory", "not a directory"}
)

// What a writer refuses.
var (
	ErrExists   error = &refusal{"exists", "there is a cassette already"}
	ErrNoFinal  error = &refusal{"no-final", "a cassette ends with a final record"}
	ErrFinished error = &refusal{"finished", "the recording has ended"}
)

// Code returns the short name of the refusal that err is, "" where it is none. The names stand in docs/reference/cassette.md.
func Code(err error) string {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code
	}
	return ""
}

// A FileError is a refusal with its place. Unwrap gives the refusal.
type FileError struct {
	File   string // the name within the cassette
	Line   int    // from 1; 0 where the file has no lines
	Detail string // what was expected and what came; "" where the refusal says all
	Err    error
}

// Error returns "file: line 3: refusal: detail".
func (e *FileError) Error() string {
	s := e.File
	if e.Line > 0 {
		s = fmt.Sprintf("%s: line %d", s, e.Line)
	}
	s += ": " + e.Err.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the refusal.
func (e *FileError) Unwrap() error { return e.Err }

func refuse(file string, line int, err error, format string, args ...any) error {
	return &FileError{File: file, Line: line, Err: err, Detail: fmt.Sprintf(format, args...)}
}
