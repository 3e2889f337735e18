// Package corpus holds the frozen cases of the format, good and bad, each with what a reader must make of it in the file
// itself. README.md is their grammar; this package is one reader of it, check.py is another.
//
// Compatibility: a case is added, never changed, and loads for ever. frozen.sum and a test hold that.
//
// Not a goal: to say how a reader works. A case says what comes in and what must come of it.
package corpus

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

//go:embed tape/*.case pairs/*.case store/*.case sessions/*.case recording cassettes seals
var files embed.FS

// A Case is one file of the corpus.
type Case struct {
	Name   string // "good-strings"
	Shows  string // why the case is here
	Fields []Field
	Body   []byte // everything behind the empty line: the tape, of a tape's case
}

// A Field is one line of a case's header.
type Field struct{ Key, Value string }

// Tapes returns the cases of tapes, by name.
func Tapes() ([]Case, error) { return read("tape") }

// Pairs returns the cases of two tapes that are compared, by name.
func Pairs() ([]Case, error) { return read("pairs") }

// Stores returns the cases of directories of blobs, by name.
func Stores() ([]Case, error) { return read("store") }

// Sessions returns the cases of session logs, by name.
func Sessions() ([]Case, error) { return read("sessions") }

// Recordings returns the cases of recordings, by name.
func Recordings() ([]Case, error) { return read("recording") }

// RecordingFiles returns the recordings themselves, in the directories and packed files that their cases name.
func RecordingFiles() (fs.FS, error) { return fs.Sub(files, "recording") }

// CassetteFiles returns the terminal cassettes, a directory each. What must come of one stands in its outcome.json.
func CassetteFiles() (fs.FS, error) { return fs.Sub(files, "cassettes") }

// Seals returns the cases of sealed recordings and of proofs, by name.
func Seals() ([]Case, error) { return read("seals") }

// SealFiles returns the sealed recordings that cases change, in the directories that they name.
func SealFiles() (fs.FS, error) { return fs.Sub(files, "seals") }

func read(dir string) ([]Case, error) {
	paths, err := fs.Glob(files, dir+"/*.case")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, path := range paths {
		b, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		c, err := Parse(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		c.Name = strings.TrimSuffix(strings.TrimPrefix(path, dir+"/"), ".case")
		all = append(all, *c)
	}
	return all, nil
}

var errNoCase = errors.New("a case is lines of \"key: value\", the first one \"shows\", and an empty line")

// Parse reads a case.
func Parse(b []byte) (*Case, error) {
	c := &Case{}
	for {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			return nil, errNoCase
		}
		b = rest
		if len(line) == 0 {
			break
		}
		key, value, ok := strings.Cut(string(line), ": ")
		if !ok || key == "" {
			return nil, fmt.Errorf("%w: %.80q is none", errNoCase, line)
		}
		c.Fields = append(c.Fields, Field{key, value})
	}
	if len(c.Fields) == 0 || c.Fields[0].Key != "shows" {
		return nil, errNoCase
	}
	c.Shows, c.Body = c.Fields[0].Value, b
	return c, nil
}

// Get returns the value of key, "" where the header has none.
func (c *Case) Get(key string) string {
	i := slices.IndexFunc(c.Fields, func(f Field) bool { return f.Key == key })
	if i < 0 {
		return ""
	}
	return c.Fields[i].Value
}

// Int returns the value of key, 0 where the header has none.
func (c *Case) Int(key string) (int, error) {
	value := c.Get(key)
	if value == "" {
		return 0, nil
	}
	return strconv.Atoi(value)
}

// Pair returns the two tapes of a pair: that of the recording, and that of its replay.
func (c *Case) Pair() (recorded, replay []byte, err error) {
	recorded, replay, ok := bytes.Cut(c.Body, []byte("\n\n"))
	if !ok {
		return nil, nil, fmt.Errorf("%s holds one tape", c.Name)
	}
	return append(recorded[:len(recorded):len(recorded)], '\n'), replay, nil
}

// Blobs returns the files beside a tape, by name.
func (c *Case) Blobs() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, f := range c.Fields {
		if f.Key != "blob" {
			continue
		}
		name, text, _ := strings.Cut(f.Value, " ")
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("blob %s: %w", name, err)
		}
		all[name] = b
	}
	return all, nil
}
