package foreign

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// MaxFile bounds, in bytes, a foreign file, and what a body of it unpacks to. A longer one is an error.
const MaxFile = 512 << 20

// headSize is how many bytes of a file Detect looks at.
const headSize = 64 << 10

// An Importer reads one foreign format: a file with a list of exchanges in it, as YAML or as JSON.
type Importer struct {
	name    string
	looks   func(head []byte) bool // a file that begins so is of this format
	within  string                 // the key of the object in which the list stands; "" for the file itself
	lists   []string               // the keys of the list
	unit    string                 // what people call one of the list, of JSON
	byTime  bool                   // exchanges go by their times, else as they stand in the file
	version func(key string, v *node) string
	message func(m *maker, n *node, x *message) error
}

// Name is how people name the format: "har", "go-vcr", "vcr".
func (im *Importer) Name() string { return im.name }

// Import makes the tape out, with its blobs beside it, of the file at path: whole or not at all. Errors: os.ErrExist where
// out is there, ctx's, a *ReadError for a file that is not of the format, those of the file system.
func (im *Importer) Import(ctx context.Context, path, out string, o *Options) (*Report, error) {
	m := &maker{ctx: ctx, of: im, report: Report{Format: im.name}}
	if o != nil {
		m.opts = *o
	}
	return m.make(path, out)
}

// Options say how an import works. Nil and zero work.
type Options struct {
	// Scrub finds the secrets. Nil is a new one that looks for those of the process's environment as well, with a key of its own.
	// One that has been used is fine: placeholders are numbered by their appearance on the tape.
	Scrub *scrub.Scrubber
	// Progress is told how many bytes of bodies are on the tape, of how many. Nil is nobody.
	Progress func(done, total int64)
	// Sync brings the tape and its blobs to the disk before Import returns.
	Sync bool
}

// A Report says what was made of a file.
type Report struct {
	Format    string // the importer's name
	Version   string // of the format and of the program that wrote the file, as far as it says: "1.2, Firefox 140.0"
	Exchanges int    // on the tape
	LLMCalls  int    // of them
	Skipped   []Skip // in order of appearance
	Notes     []string
}

// A Skip says how many exchanges of the file are not on the tape for one reason.
type Skip struct {
	Why   string
	Count int
	First string // where the first one stands: "entry 3", "line 120"
}

// A ReadError says what is wrong with a foreign file.
type ReadError struct {
	Path  string
	Where string // "line 12", "byte 300", "entry 3"; "" for all of it
	Err   error
}

func (e *ReadError) Error() string {
	if e.Where == "" {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Path, e.Where, e.Err)
}

// Unwrap returns Err.
func (e *ReadError) Unwrap() error { return e.Err }

// ErrFormat is wrapped by the error for a file that is of no format, or not of the one that was asked for.
var ErrFormat = errors.New("not a format that can be imported")

// importers are all there are, in the order in which Detect asks them.
var importers = []*Importer{&har, &goVCR, &vcr}

// Names lists the formats.
func Names() []string {
	var names []string
	for _, im := range importers {
		names = append(names, im.Name())
	}
	return names
}

// ByName returns the importer of a format.
func ByName(name string) (*Importer, bool) {
	for _, im := range importers {
		if im.Name() == name {
			return im, true
		}
	}
	return nil, false
}

// Detect returns the importer of the file at path, by what is in it. The error wraps ErrFormat where there is none.
func Detect(path string) (*Importer, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, im := range importers {
		if im.looks(head[:n]) {
			return im, nil
		}
	}
	return nil, fmt.Errorf("%s: %w: want a HAR file, or a cassette of go-vcr, VCR or vcrpy", path, ErrFormat)
}
