package annotations

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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

// Append adds a to the sidecar of the tape at tapePath, which it begins where there is none; producer is our name and version for
// its header. An empty ID and Timestamp are filled in, in a too. What would be a problem of the new line is refused (an event
// that the tape lacks, an id that is there, a field that its kind demands), and so is a sidecar that is not this tape's.
//
// Several processes may append at once: the tape itself is what they lock.
func Append(tapePath, producer string, a *Annotation) error {
	lock := flock.New(tapePath, flock.SetFlag(os.O_RDONLY)) // no lock file: a recording holds what its seal knows
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the tape: %w", err)
	}
	defer lock.Unlock()
	s, err := Open(tapePath)
	if err != nil {
		return err
	}
	if s == nil {
		digest, err := digestOf(tapePath)
		if err != nil {
			return err
		}
		s = &Sidecar{Header: Header{SchemaVersion, filepath.ToSlash(filepath.Base(tapePath)), digest, producer}}
	}
	if err := s.accept(tapePath, a); err != nil {
		return err
	}
	return s.write(tapePath, a)
}

// accept fills a in and refuses it where it would not hold.
func (s *Sidecar) accept(tapePath string, a *Annotation) error {
	if a.ID == "" {
		a.ID = nextID(s.Annotations)
	}
	if a.Timestamp == "" {
		a.Timestamp = time.Now().UTC().Format(time.RFC3339)
	}
	a.missing = a.lacks()
	alone := &Sidecar{Header: s.Header, Annotations: []*Annotation{a}, path: s.path}
	for _, other := range s.Annotations {
		if other.ID == a.ID {
			return refuse([]Problem{{Message: fmt.Sprintf("the id %q stands in line %d already", a.ID, other.line)}})
		}
	}
	problems, err := Validate(alone, tapePath)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return refuse(problems)
	}
	return nil
}

// write puts a behind the whole lines of the sidecar, and the header before it where there are none.
func (s *Sidecar) write(tapePath string, a *Annotation) error {
	var b []byte
	var err error
	if s.size == 0 {
		if b, err = line("header", s.Header); err != nil {
			return err
		}
	}
	said, err := line("annotation", a)
	if err != nil {
		return err
	}
	if len(said) > MaxLine {
		return fmt.Errorf("%w: it would take %d bytes: say it in fewer words, or link to it", ErrLineTooLong, len(said))
	}
	f, err := os.OpenFile(tapePath+Suffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(s.put(f, append(b, said...)), f.Close())
}

// put writes b over what stands behind the whole lines: nothing, or the half of one that a crash left.
func (s *Sidecar) put(f *os.File, b []byte) error {
	if err := f.Truncate(s.size); err != nil {
		return err
	}
	if s.size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, s.size-1); err != nil {
			return err
		}
		if last[0] != '\n' { // whole, and without its newline
			b = append([]byte{'\n'}, b...)
		}
	}
	if _, err := f.WriteAt(b, s.size); err != nil {
		return err
	}
	return f.Sync()
}

// line is v as a line whose first key is its type.
func line(typ string, v any) ([]byte, error) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{\"type\":%q,%s\n", typ, b[1:]), nil
}

// digestOf is the digest of a file's bytes.
func digestOf(path string) (cas.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return cas.Digest{}, err
	}
	defer f.Close()
	h := cas.NewHasher()
	_, err = io.Copy(h, f)
	return h.Sum(), err
}
