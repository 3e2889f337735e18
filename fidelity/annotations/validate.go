package annotations

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
