package annotations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// What a LoadError wraps.
var (
	// ErrNoHeader says that the first line is not the header.
	ErrNoHeader = errors.New("the header is missing: the first line must be one")
	// ErrVersion says that the sidecar is of a newer version than SchemaVersion. The message names both.
	ErrVersion = errors.New("the sidecar is too new")
	// ErrMalformed says that a line is not what it must be.
	ErrMalformed = errors.New("the line does not hold what it must")
	// ErrLineTooLong says that a line is longer than MaxLine.
	ErrLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)
)

// A LoadError says where a sidecar cannot be read, and wraps one of the errors above.
type LoadError struct {
	Path string
	Line int // from 1
	Err  error
}

// Error implements error.
func (e *LoadError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LoadError) Unwrap() error { return e.Err }

// A Sidecar is what people said about one tape.
type Sidecar struct {
	Header      Header
	Annotations []*Annotation // in the order in which they stand
	Torn        bool          // a torn last line was dropped

	named bool // the header has a digest, be it all zeros

	path string // for problems
	size int64  // bytes of its whole lines
}

// About returns the annotations that are about the event seq.
func (s *Sidecar) About(seq uint64) []*Annotation {
	if s == nil {
		return nil
	}
	var about []*Annotation
	for _, a := range s.Annotations {
		if a.About(seq) {
			about = append(about, a)
		}
	}
	return about
}

// Of reports whether s was made for the tape at tapePath, by the digest of that as it is now.
func (s *Sidecar) Of(tapePath string) (bool, error) {
	digest, err := digestOf(tapePath)
	return digest == s.Header.TapeContentHash, err
}

// Open reads the sidecar of the tape at tapePath. Where there is none it returns nil, and no error.
func Open(tapePath string) (*Sidecar, error) {
	if there, err := regular(tapePath + Suffix); err != nil || !there {
		return nil, err
	}
	f, err := os.Open(tapePath + Suffix)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, tapePath+Suffix)
}

// regular reports whether a sidecar stands at path. What is no file there is never opened, which may wait for ever, and nothing is
// made where a link leads.
func regular(path string) (bool, error) {
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return false, fmt.Errorf("%s is a link to nothing: remove it", path)
		}
		return false, nil
	}
	if err == nil && !st.Mode().IsRegular() {
		return false, fmt.Errorf("%s is no regular file: remove it", path)
	}
	return err == nil, err
}

// Read reads a sidecar; name stands for it in errors. The error is a *LoadError, or that of r.
func Read(r io.Reader, name string) (*Sidecar, error) {
	s := &Sidecar{path: name}
	lines := jsonscan.NewLines(r, MaxLine)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return s, s.begun(name, lines.Line()+1)
		}
		if long, ok := errors.AsType[*jsonscan.LongLineError](err); ok {
			return nil, &LoadError{name, long.Line, ErrLineTooLong}
		}
		if err != nil {
			return nil, &LoadError{name, lines.Line() + 1, err}
		}
		if err := s.take(line, lines.Line()); err != nil {
			if lines.Torn() && !json.Valid(line) {
				s.Torn = true // what a crash leaves
				return s, s.begun(name, lines.Line())
			}
			return nil, &LoadError{name, lines.Line(), err}
		}
		s.size += int64(len(line))
	}
}

// begun reports a sidecar that ended before its header.
func (s *Sidecar) begun(name string, line int) error {
	if s.Header.SchemaVersion == 0 {
		return &LoadError{name, line, ErrNoHeader}
	}
	return nil
}

// take takes one line.
func (s *Sidecar) take(line []byte, number int) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	var what struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &what); err != nil {
		return malformed(err)
	}
	begun := s.Header.SchemaVersion != 0
	switch {
	case what.Type == "header" && begun:
		return fmt.Errorf("%w: a second header", ErrMalformed)
	case what.Type == "header":
		return s.takeHeader(line)
	case !begun:
		return ErrNoHeader
	case what.Type != "annotation":
		return fmt.Errorf("%w: its type is %q, want header or annotation", ErrMalformed, what.Type)
	}
	return s.takeAnnotation(line, number)
}

func (s *Sidecar) takeHeader(line []byte) error {
	var h struct {
		Header
		Digest *cas.Digest `json:"tape_content_hash"` // in the place of the Header's
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return malformed(err)
	}
	switch {
	case h.SchemaVersion < 1:
		return fmt.Errorf("%w: schema_version must be 1 or more", ErrMalformed)
	case h.SchemaVersion > SchemaVersion:
		return fmt.Errorf("%w: schema_version %d, this reads up to %d", ErrVersion, h.SchemaVersion, SchemaVersion)
	}
	if s.named = h.Digest != nil; s.named {
		h.TapeContentHash = *h.Digest
	}
	s.Header = h.Header
	return nil
}

func (s *Sidecar) takeAnnotation(line []byte, number int) error {
	a := &Annotation{line: number}
	if err := json.Unmarshal(line, a); err != nil {
		return malformed(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil {
		return malformed(err)
	}
	a.missing = missingKeys(a, keys)
	s.Annotations = append(s.Annotations, a)
	return nil
}

// missingKeys lists the required keys that an annotation lacks, or that are empty.
func missingKeys(a *Annotation, keys map[string]json.RawMessage) (missing []string) {
	absent := func(keys map[string]json.RawMessage, prefix string, names ...string) { // 0 and "" are values of theirs
		for _, name := range names {
			if v, ok := keys[name]; !ok || string(v) == "null" {
				missing = append(missing, prefix+name)
			}
		}
	}
	absent(keys, "", "event_id", "evidence")
	missing = append(missing, a.lacks()...)
	var span map[string]json.RawMessage
	if json.Unmarshal(keys["span"], &span) == nil && span != nil {
		absent(span, "span.", "start_event_id", "end_event_id")
	}
	return missing
}

// lacks lists the fields that a must have filled in and has not.
func (a *Annotation) lacks() (missing []string) {
	for _, f := range []struct {
		name  string
		empty bool
	}{
		{"id", a.ID == ""}, {"kind", a.Kind == ""}, {"author.id", a.Author.ID == ""}, {"author.kind", a.Author.Kind == ""}, {"author.surface", a.Author.Surface == ""},
		{"timestamp", a.Timestamp == ""},
		{"hypothesis_status", a.Kind == Hypothesis && a.HypothesisStatus == ""},
		{"friction_kind", a.Kind == Friction && a.FrictionKind == ""},
	} {
		if f.empty {
			missing = append(missing, f.name)
		}
	}
	return missing
}

func malformed(err error) error { return fmt.Errorf("%w: %w", ErrMalformed, err) }

// A Code is the stable name of a problem.
type Code string

// The problems of a sidecar.
const (
	UnknownEvent Code = "unknown_event" // an event_id, or the end of a span, that the tape lacks
	DuplicateID  Code = "duplicate_id"  // an id that an earlier annotation has
	TapeDigest   Code = "tape_digest"   // the tape is no longer what the header names
	MissingField Code = "missing_field" // a required key is not there, or empty
	BadSpan      Code = "bad_span"      // start_event_id is not event_id, or end_event_id is below it
	BadValue     Code = "bad_value"     // a status that is none, a timestamp that is no RFC 3339
	TornLine     Code = "torn_line"     // the last line is what a crash leaves
)

// A Problem is one thing that does not hold in a sidecar.
type Problem struct {
	Code    Code   `json:"code"`
	Line    int    `json:"line"`         // of the sidecar, from 1; 0 for one of the whole
	ID      string `json:"id,omitempty"` // the annotation's
	Message string `json:"message"`
}

// Validate holds a sidecar against the tape at tapePath. The error is of a tape that cannot be read.
func Validate(s *Sidecar, tapePath string) ([]Problem, error) {
	v := &validation{ids: make(map[string]int), events: make(map[uint64]bool)}
	if err := v.readTape(s, tapePath); err != nil {
		return nil, err
	}
	switch {
	case s.Header.TapeContentHash.IsZero() && !s.named:
		v.say(nil, MissingField, "the header lacks tape_content_hash: nothing tells which tape the annotations were made for")
	case v.digest != s.Header.TapeContentHash:
		v.say(nil, TapeDigest, "the tape has the digest %s, and the annotations were made for %s: what they say of its events may no longer be so",
			v.digest, s.Header.TapeContentHash)
	}
	for _, a := range s.Annotations {
		v.annotation(a)
	}
	if s.Torn {
		v.say(nil, TornLine, "the last line is torn, as a crash leaves it; it was dropped")
	}
	return v.problems, nil
}

type validation struct {
	digest   cas.Digest
	events   map[uint64]bool // asked for → there
	ids      map[string]int  // → the line that has it
	problems []Problem
}

func (v *validation) say(a *Annotation, c Code, format string, args ...any) {
	p := Problem{Code: c, Message: fmt.Sprintf(format, args...)}
	if a != nil {
		p.Line, p.ID = a.line, a.ID
	}
	v.problems = append(v.problems, p)
}

// readTape finds the tape's digest, and which of the events that s names it has.
func (v *validation) readTape(s *Sidecar, path string) error {
	for _, a := range s.Annotations {
		v.events[a.EventID], v.events[a.Last()] = false, false
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := cas.NewHasher()
	r, err := tape.NewReaderOptions(io.TeeReader(f, h), path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	for rec, err := range r.Records() {
		if err != nil {
			return err
		}
		if _, asked := v.events[rec.Seq]; asked {
			v.events[rec.Seq] = true
		}
	}
	if _, err := io.Copy(h, f); err != nil { // what stands behind a torn line, too
		return err
	}
	v.digest = h.Sum()
	return nil
}

func (v *validation) annotation(a *Annotation) {
	if len(a.missing) > 0 {
		v.say(a, MissingField, "it lacks %s", strings.Join(a.missing, ", "))
	}
	if line, twice := v.ids[a.ID]; twice && a.ID != "" {
		v.say(a, DuplicateID, "the id %q stands in line %d already", a.ID, line)
	} else {
		v.ids[a.ID] = a.line
	}
	v.event(a)
	if a.HypothesisStatus != "" && !slices.Contains(Statuses(), a.HypothesisStatus) {
		v.say(a, BadValue, "hypothesis_status %q: want one of %s", a.HypothesisStatus, strings.Join(Statuses(), ", "))
	}
	if _, err := time.Parse(time.RFC3339, a.Timestamp); a.Timestamp != "" && err != nil {
		v.say(a, BadValue, "timestamp %q is no time in RFC 3339", a.Timestamp)
	}
}

// event checks which events a is about.
func (v *validation) event(a *Annotation) {
	if slices.Contains(a.missing, "event_id") {
		return
	}
	if !v.events[a.EventID] {
		v.say(a, UnknownEvent, "the tape has no event %d", a.EventID)
	}
	if a.Span == nil || slices.ContainsFunc(a.missing, func(name string) bool { return strings.HasPrefix(name, "span.") }) {
		return
	}
	switch {
	case a.Span.StartEventID != a.EventID:
		v.say(a, BadSpan, "the span starts at event %d, and the annotation is about %d: they must be the same", a.Span.StartEventID, a.EventID)
	case a.Span.EndEventID < a.Span.StartEventID:
		v.say(a, BadSpan, "the span ends at event %d, before it starts at %d", a.Span.EndEventID, a.Span.StartEventID)
	case a.Span.EndEventID != a.EventID && !v.events[a.Span.EndEventID]:
		v.say(a, UnknownEvent, "the tape has no event %d, at which the span ends", a.Span.EndEventID)
	}
}

// errInvalid is wrapped by the refusal of an annotation that would not hold.
var errInvalid = errors.New("the annotation would not hold")

// refuse makes an error of what Validate says about one annotation.
func refuse(problems []Problem) error {
	var b bytes.Buffer
	for i, p := range problems {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.Message)
	}
	return fmt.Errorf("%w: %s", errInvalid, b.String())
}
