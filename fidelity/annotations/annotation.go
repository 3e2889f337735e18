package annotations

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

const (
	// Suffix is what a sidecar's path has behind the tape's.
	Suffix = ".annotations.jsonl"
	// SchemaVersion is the version that this package writes, and the highest that it reads.
	SchemaVersion = 1
	// MaxLine is the longest line of a sidecar, in bytes, that is read and written.
	MaxLine = 1 << 20
)

// A Kind says what an annotation is.
type Kind string

// The kinds of spec version 1. KindUnknown stands for any other: see Annotation.Known.
const (
	Correct         Kind = "correct"
	Incorrect       Kind = "incorrect"
	Alternative     Kind = "alternative"
	Note            Kind = "note"
	Marker          Kind = "marker"
	Mute            Kind = "mute"
	Hypothesis      Kind = "hypothesis"
	Friction        Kind = "friction"
	CrystallizeHere Kind = "crystallize_here"
	KindUnknown     Kind = "unknown"
)

// Kinds lists the known kinds.
func Kinds() []Kind {
	return []Kind{Correct, Incorrect, Alternative, Note, Marker, Mute, Hypothesis, Friction, CrystallizeHere}
}

// Statuses lists what a hypothesis can be.
func Statuses() []string { return []string{"active", "verifying", "confirmed", "disproven", "stale"} }

// A Header is the first line of a sidecar.
type Header struct {
	SchemaVersion   int        `json:"schema_version"`
	TapePath        string     `json:"tape_path"`
	TapeContentHash cas.Digest `json:"tape_content_hash"` // BLAKE3 of the tape's bytes
	HarnVersion     string     `json:"harn_version"`      // the producer's name and version
}

// An Author is who says it: kind "human" or "agent", on a surface such as "cli".
type Author struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Surface string `json:"surface,omitempty"`
}

// A Span is the run of events that an annotation is about, the first and the last of them.
type Span struct {
	StartEventID uint64 `json:"start_event_id"`
	EndEventID   uint64 `json:"end_event_id"`
}

// A Link leads somewhere else.
type Link struct {
	Label     string `json:"label,omitempty"`
	URL       string `json:"url,omitempty"`
	Reference string `json:"reference,omitempty"`
}

// An Annotation is what somebody says about one event.
type Annotation struct {
	ID               string          `json:"id"`
	EventID          uint64          `json:"event_id"` // seq of the record
	Kind             Kind            `json:"kind"`     // as it stood, also where it is not known
	Evidence         string          `json:"evidence"`
	Author           Author          `json:"author"`
	Timestamp        string          `json:"timestamp"` // RFC 3339
	SuggestedFix     json.RawMessage `json:"suggested_fix,omitempty"`
	Span             *Span           `json:"span,omitempty"`
	HypothesisStatus string          `json:"hypothesis_status,omitempty"` // one of Statuses
	FrictionKind     string          `json:"friction_kind,omitempty"`
	Links            []Link          `json:"links,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`

	line    int      // in the sidecar, from 1; 0 for one that was not read
	missing []string // required keys that its line lacked
}

// Known returns a's kind, KindUnknown for one that this version does not know.
func (a *Annotation) Known() Kind {
	if slices.Contains(Kinds(), a.Kind) {
		return a.Kind
	}
	return KindUnknown
}

// Last returns the seq of the last event that a is about.
func (a *Annotation) Last() uint64 {
	if a.Span != nil && a.Span.EndEventID > a.EventID {
		return a.Span.EndEventID
	}
	return a.EventID
}

// About reports whether a is about the event seq.
func (a *Annotation) About(seq uint64) bool { return a.EventID <= seq && seq <= a.Last() }

// String says an annotation in one line, for people: "hypothesis ann_001 (active, by ada): the clock was read twice".
func (a *Annotation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", a.Kind, a.ID)
	var about []string
	for _, s := range []string{a.HypothesisStatus, a.FrictionKind} {
		if s != "" {
			about = append(about, s)
		}
	}
	if a.Author.ID != "" {
		about = append(about, "by "+a.Author.ID)
	}
	if a.Last() > a.EventID {
		about = append(about, "events "+strconv.FormatUint(a.EventID, 10)+" to "+strconv.FormatUint(a.Last(), 10))
	}
	if len(about) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(about, ", "))
	}
	b.WriteString(": " + strings.Join(strings.Fields(a.Evidence), " "))
	if len(a.SuggestedFix) > 0 {
		b.WriteString("; suggested: " + string(a.SuggestedFix))
	}
	for _, l := range a.Links {
		b.WriteString("; " + strings.Join(slices.DeleteFunc([]string{l.Label, l.URL, l.Reference}, func(s string) bool { return s == "" }), " "))
	}
	return b.String()
}

// nextID returns an id that no annotation of all has: "ann_" and the highest number so far plus one, in three digits or more.
func nextID(all []*Annotation) string {
	highest := uint64(0)
	for _, a := range all {
		digits, ok := strings.CutPrefix(a.ID, "ann_")
		if n, err := strconv.ParseUint(digits, 10, 63); ok && err == nil {
			highest = max(highest, n)
		}
	}
	return fmt.Sprintf("ann_%03d", highest+1)
}

// now is the time of an annotation that gives none.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
