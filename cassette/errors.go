package cassette

import (
	"errors"
	"fmt"
)

// What a reader refuses. Open returns each of them wrapped, with the file, the line and both sides where there are two; Code
// gives its short name.
var (
	ErrNoManifest   = errors.New("no manifest: the recording is not finished")
	ErrMissingFile  = errors.New("a required file is missing")
	ErrVersion      = errors.New("a version of the format that is not known here")
	ErrNoID         = errors.New("no id")
	ErrNoDigest     = errors.New("no content digest")
	ErrDigest       = errors.New("the content digest does not match output.raw")
	ErrChunkDigest  = errors.New("a chunk's digest does not match its bytes")
	ErrChunkRange   = errors.New("a chunk's range is wrong")
	ErrSequence     = errors.New("seq has a gap or goes back")
	ErrTime         = errors.New("t_ms goes back")
	ErrFeature      = errors.New("a required feature is not known here")
	ErrNoEmulator   = errors.New("no emulator")
	ErrResolution   = errors.New("resolution_ms is not above 0")
	ErrBadJSON      = errors.New("not the JSON that must stand here")
	ErrTooLong      = errors.New("longer than a reader takes")
	ErrNotBound     = errors.New("another cassette than the expected one")
	ErrEmulator     = errors.New("another emulator than the required one")
	ErrNotDirectory = errors.New("not a directory")
)

// What a writer refuses.
var (
	ErrExists   = errors.New("there is a cassette already")
	ErrNoFinal  = errors.New("a cassette ends with a final record")
	ErrFinished = errors.New("the recording has ended")
)

var codes = []struct {
	err  error
	code string
}{
	{ErrNoManifest, "unfinished"},
	{ErrMissingFile, "missing-file"},
	{ErrVersion, "version"},
	{ErrNoID, "no-id"},
	{ErrNoDigest, "no-digest"},
	{ErrDigest, "digest"},
	{ErrChunkDigest, "chunk-digest"},
	{ErrChunkRange, "chunk-range"},
	{ErrSequence, "sequence"},
	{ErrTime, "time"},
	{ErrFeature, "feature"},
	{ErrNoEmulator, "no-emulator"},
	{ErrResolution, "resolution"},
	{ErrBadJSON, "bad-json"},
	{ErrTooLong, "too-long"},
	{ErrNotBound, "not-bound"},
	{ErrEmulator, "emulator"},
	{ErrNotDirectory, "not-a-directory"},
	{ErrExists, "exists"},
	{ErrNoFinal, "no-final"},
	{ErrFinished, "finished"},
}

// Code returns the short name of the refusal that err is, "" where it is none. The names stand in docs/reference/cassette.md.
func Code(err error) string {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
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
