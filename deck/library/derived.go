package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/version"
)

// What is known of a recording beside what it holds stands in small files of its name beside it and beside pointers, never inside one: a
// seal covers what lies there. Each is written whole, by whoever comes to know it, and is derived: who deletes it loses a column of the
// list, or the time to add it up again.
const (
	verdictExt = ".verdict" // how the last replay ended
	totalsExt  = ".totals"  // of a recording that an older version made, which keeps none itself
)

// The kinds of longer ones (KeepDerived).
const (
	Index  = ".index"  // what a page needs to know of the tape (package page)
	Report = ".report" // how the last replay was held against the recording: a Judgement
)

// derivedExts are all of them.
var derivedExts = []string{verdictExt, totalsExt, Index, Report}

// maxKept bounds one, in bytes.
const maxKept = 256 << 20

// A derived file begins with a line that says of which recording it is: a newer one may have taken the name. What is short stands in that
// line, what is long behind it.
type derived struct {
	Recording string          `json:"recording"` // its id
	StartedAt time.Time       `json:"started_at"`
	Tapedeck  string          `json:"tapedeck"` // the version that wrote it
	Value     json.RawMessage `json:"value,omitempty"`
}

// A Judgement is how a replay was held against its recording.
type Judgement struct {
	Report *fidelity.Report `json:"report"`
	Replay string           `json:"replay"` // id of the replay where that was kept as a recording, else ""
	Other  bool             `json:"other"`  // another program ran than the recording's
	At     time.Time        `json:"at"`
}

// A Verdict is how the last replay of a recording ended.
type Verdict struct {
	Status   string    `json:"status"`  // a word: faithful, diverged, …
	Summary  string    `json:"summary"` // a line
	By       string    `json:"by"`      // replay or test
	Tapedeck string    `json:"tapedeck"`
	At       time.Time `json:"at"`
}

// Judged keeps v as the last verdict of rec, in each library here that knows it: the one that it lies in, that of its work tree, that of
// the working directory, with the report that it was read off; j without one where there is none. A verdict without a time is of now. A library
// is never made for it. What cannot be written is let go: no replay fails for the list.
func Judged(rec *recording.Recording, v Verdict, j Judgement) {
	if v.At.IsZero() {
		v.Tapedeck, v.At = version.Version, time.Now().UTC().Truncate(time.Second)
	}
	for name := range namesOf(rec) {
		note(rec.Manifest, name+verdictExt, &v)
		if j.Report == nil {
			_ = os.Remove(name + Report) // of the replay before
		}
	}
	Reported(rec, j)
}

// Reported keeps a report alone: what another program does says nothing about the recording, but why it differs is worth a look.
func Reported(rec *recording.Recording, j Judgement) {
	j.At = time.Now().UTC().Truncate(time.Second)
	if b, err := json.Marshal(&j); err == nil && j.Report != nil {
		KeepDerived(rec, Report, b)
	}
}

// JudgementOf returns the report of the last replay of rec; nil where there is none.
func JudgementOf(rec *recording.Recording) *Judgement {
	b, _ := ReadDerived(rec, Report)
	j := new(Judgement)
	if b == nil || json.Unmarshal(b, j) != nil || j.Report == nil {
		return nil
	}
	return j
}

// VerdictOf returns the last verdict of rec; nil where there is none.
func VerdictOf(rec *recording.Recording) *Verdict {
	v := new(Verdict)
	for name := range namesOf(rec) {
		if b, _ := read(rec.Manifest, name+verdictExt); b != nil && json.Unmarshal(b, v) == nil {
			return v
		}
	}
	return nil
}

// KeepsDerived reports whether a library here knows rec.
func KeepsDerived(rec *recording.Recording) bool { return len(namesOf(rec)) > 0 }

// KeepDerived keeps what was derived of rec as one of the longer kinds, in each library here that knows it, as Judged does.
func KeepDerived(rec *recording.Recording, kind string, content []byte) {
	for name := range namesOf(rec) {
		keepAt(rec.Manifest, name+kind, nil, content)
	}
}

// ReadDerived returns what KeepDerived kept of rec, and the version that kept it; nil where nothing is there, or of another recording.
func ReadDerived(rec *recording.Recording, kind string) (content []byte, tapedeck string) {
	for name := range namesOf(rec) {
		if content, tapedeck = read(rec.Manifest, name+kind); content != nil {
			break
		}
	}
	return content, tapedeck
}

// note keeps a short value at path.
func note(m *recording.Manifest, path string, value any) {
	if b, err := json.Marshal(value); err == nil {
		keepAt(m, path, b, nil)
	}
}

func keepAt(m *recording.Manifest, path string, value json.RawMessage, content []byte) {
	head, err := json.Marshal(&derived{m.ID, m.StartedAt, version.Version, value})
	if err == nil {
		_ = durable.WriteFile(path, slices.Concat(head, []byte("\n"), content), &durable.Options{Mode: 0o644})
	}
}

// read returns what is kept at path, where it is of that recording, and the version that kept it; nil where it is not.
func read(m *recording.Manifest, path string) (content []byte, tapedeck string) {
	b, err := recording.ReadBounded(path, maxKept)
	if err != nil {
		return nil, ""
	}
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	var d derived
	switch {
	case json.Unmarshal(head, &d) != nil || d.Recording != m.ID || !d.StartedAt.Equal(m.StartedAt):
		return nil, ""
	case d.Value != nil:
		return d.Value, d.Tapedeck
	}
	return rest, d.Tapedeck
}

// namesOf are the paths of rec in libraries, without endings.
func namesOf(rec *recording.Recording) map[string]bool {
	out := make(map[string]bool)
	if filepath.Base(filepath.Dir(rec.Dir)) == libraryName && filepath.Ext(rec.Dir) == recordingExt {
		out[strings.TrimSuffix(rec.Dir, recordingExt)] = true
	}
	libs := []*Library{Of(rec.Manifest.Roots.Tree)}
	if here, err := At(""); err == nil {
		libs = append(libs, here)
	}
	for _, l := range libs {
		if to, ok := l.pointed(rec.Manifest.ID + pointerExt); ok && recording.Resolved(to) == rec.Dir {
			out[filepath.Join(l.Dir, rec.Manifest.ID)] = true
		}
	}
	return out
}

// read reads the derived file of e that ends in ext into value, and reports whether it is there and e's.
func (l *Library) read(e *Entry, ext string, value any) bool {
	if !e.beside[e.Name+ext] {
		return false
	}
	b, _ := read(e.Recording.Manifest, filepath.Join(l.Dir, e.Name+ext))
	return b != nil && json.Unmarshal(b, value) == nil
}

// totals are what e comes to; nil where its tape cannot be read, or known says that it is not to be. Those that recording.json lacks are kept
// once they were added up.
func (l *Library) totals(e *Entry, known bool) *recording.Totals {
	m := e.Recording.Manifest
	t := new(recording.Totals)
	if m.Totals != nil {
		return m.Totals
	}
	if l.read(e, totalsExt, t) {
		return t
	}
	if known {
		return nil
	}
	t, err := account.TotalOf(e.Recording, nil)
	if err != nil {
		return nil
	}
	if e.Recording.Finished() {
		note(m, filepath.Join(l.Dir, e.Name+totalsExt), t)
	}
	return t
}

// forget removes what was derived of the recording called name.
func (l *Library) forget(name string) error {
	var errs []error
	for _, ext := range derivedExts {
		errs = append(errs, recording.Gone(os.Remove(filepath.Join(l.Dir, name)+ext)))
	}
	return errors.Join(errs...)
}

// derived removes what was derived of recordings that are gone.
func (c *collector) derived([]Entry) error {
	names, err := os.ReadDir(c.lib.Dir)
	errs := []error{recording.Gone(err)}
	for _, n := range names {
		ext := filepath.Ext(n.Name())
		at := filepath.Join(c.lib.Dir, strings.TrimSuffix(n.Name(), ext))
		if !slices.Contains(derivedExts, ext) || recording.Exists(at+recordingExt) || recording.Exists(at+pointerExt) {
			continue
		}
		errs = append(errs, c.whole(GarbageDerived, at+ext))
	}
	return errors.Join(errs...)
}
