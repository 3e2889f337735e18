package foreign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// An Importer reads the transcripts of one agent. It may be used by several goroutines.
type Importer struct {
	name   string
	looks  func(path string, head []byte) bool              // whether a file that begins so is one of its; of a folder head is nil
	wanted func(name string) bool                           // whether a file of a folder is; nil where read finds its files itself
	suits  func(head []byte) bool                           // of a folder's files, those that a person means; nil takes all
	read   func(ctx context.Context, c *conversation) error // the file of the report
}

// Name is the agent's or format's name, as Names lists it.
func (im *Importer) Name() string { return im.name }

// Import reads the transcript at path, a file or a folder, and gives its events to emit, in order; an error of emit ends it
// and is returned as it is. The report is there with an error too, and says how far it came. An *Error says what is
// wrong with the transcript and where; others are those of the file system and of ctx.
func (im *Importer) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	r := newReport(im.name, path)
	if im.wanted != nil {
		if err := newest(r, path, im.wanted, im.suits); err != nil {
			return r, err
		}
	}
	c := &conversation{r: r, out: emit}
	return r, c.ended(im.read(ctx, c))
}

// importers are in the order in which Detect asks them: those that know theirs by its first line before those that look at names.
var importers = []*Importer{
	&codex,
	&gemini,
	&pi,
	&qwen,
	&opencode,
	&atif,
	&claude, // after qwen, whose lines have the keys that claude's are known by
}

// ByName returns the importer of that name.
func ByName(name string) (*Importer, bool) {
	i := slices.IndexFunc(importers, func(i *Importer) bool { return i.Name() == name })
	if i < 0 {
		return nil, false
	}
	return importers[i], true
}

// Names lists the importers, sorted.
func Names() []string {
	var names []string
	for _, i := range importers {
		names = append(names, i.Name())
	}
	slices.Sort(names)
	return names
}

// Detect finds the importer for a file, or a folder that says whose it is by the names in it, of which PATH#SESSION may name one session
// (see opencode). The error is ErrEmpty or ErrUnknown in an *Error, or one of the file system.
func Detect(path string) (*Importer, error) {
	path, _ = chosen(path)
	head, err := headOf(path)
	if err != nil {
		return nil, err
	}
	for _, i := range importers {
		if i.looks(path, head) {
			return i, nil
		}
	}
	return nil, &Error{Path: path, Err: fmt.Errorf("%w; name one of %s", ErrUnknown, strings.Join(Names(), ", "))}
}

// A Report says what came of a transcript.
type Report struct {
	Format  string   `json:"format"`            // the importer's name
	Version string   `json:"version,omitempty"` // of the program that wrote it, as it says; "" where it does not
	Session string   `json:"session,omitempty"` // the session's id, as it says
	File    string   `json:"file"`              // what was read: path, or the file chosen in that folder
	Lines   int      `json:"lines"`             // lines read, or records where the format has no lines
	Turns   int      `json:"turns"`
	Calls   int      `json:"calls"`
	Results int      `json:"results"`
	Skipped []Skip   `json:"skipped"`
	Notes   []string `json:"notes"`
}

// A Skip is what did not become an event, and why.
type Skip struct {
	What      string `json:"what"` // "progress lines", "a line of type x", …
	Why       string `json:"why"`
	Count     int    `json:"count"`
	FirstLine int    `json:"first_line,omitempty"` // from 1; 0 where the format has no lines
}

// newReport returns an empty report, whose lists are not nil.
func newReport(format, path string) *Report {
	return &Report{Format: format, File: path, Skipped: []Skip{}, Notes: []string{}}
}

// maxSkips bounds how many different skips are told apart: a hostile file can invent a type a line.
const maxSkips = 200

// skip counts something that becomes no event.
func (r *Report) skip(what, why string, line int) {
	for i := range r.Skipped {
		if s := &r.Skipped[i]; s.What == what && s.Why == why {
			s.Count++
			return
		}
	}
	if len(r.Skipped) >= maxSkips {
		what, why = "other things", "more than "+fmt.Sprint(maxSkips)+" different ones"
		if last := &r.Skipped[len(r.Skipped)-1]; last.What == what {
			last.Count++
			return
		}
	}
	r.Skipped = append(r.Skipped, Skip{What: what, Why: why, Count: 1, FirstLine: line})
}

// skipKind is skip for something of a kind that known has a reason for.
func (r *Report) skipKind(what, kind string, known map[string]string, line int) {
	why, ok := known[kind]
	if !ok {
		why = "unknown"
	}
	r.skip(what+kind, why, line)
}

// note says something about the transcript as a whole, once.
func (r *Report) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// An Error is what is wrong with a transcript.
type Error struct {
	Path string
	Line int // from 1; 0 where the format has no lines or the whole file is meant
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// What Detect and importers find wrong with a file as a whole.
var (
	// ErrUnknown: the form is none that an importer here knows.
	ErrUnknown = errors.New("no agent's transcript that is known here")
	// ErrEmpty: there is nothing in the file or folder.
	ErrEmpty = errors.New("empty: expected an agent's transcript")
)
