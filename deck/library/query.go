package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/version"
)

// A Query chooses recordings of a library: those of which all is true that it asks for. Zero asks for nothing. One that cannot be opened
// fits no query that asks for anything.
type Query struct {
	Since, Until time.Time      // when it began; zero for any
	Model        string         // is a part of the name of a model that was asked
	Failed       bool           // the program did not exit with 0, or the recorder did not come to its end
	Verdicts     []string       // of the last replay, any of these; NoVerdict for none
	MinCost      float64        // dollars, as far as prices are known
	MinDuration  time.Duration  // how long the program ran at least
	Known        bool           // only those totals are wanted that no tape must be read for
	Grep         *regexp.Regexp // in what was said, by whomever, in the names of files that were read or changed, in the command line
}

// NoVerdict is what a Query calls the verdict of a recording that nobody has replayed.
const NoVerdict = "none"

// A Row is an entry with what a list shows of it.
type Row struct {
	Entry
	Totals  *recording.Totals // nil where they are not known
	Verdict *Verdict          // nil where there is none
	Depth   int               // of a Tree: how many parents stand above it
}

func (q *Query) all() bool {
	return q.Since.IsZero() && q.Until.IsZero() && q.Model == "" && !q.Failed && len(q.Verdicts) == 0 && q.MinCost == 0 && q.MinDuration == 0 && q.Grep == nil
}

// early is what of q can be said by recording.json.
func (q *Query) early(m *recording.Manifest) bool {
	switch {
	case !q.Since.IsZero() && m.StartedAt.Before(q.Since), !q.Until.IsZero() && !m.StartedAt.Before(q.Until):
		return false
	}
	return !q.Failed || m.Exit == nil || m.Exit.Code != 0
}

func (q *Query) fits(r *Row) bool {
	verdict := NoVerdict
	if r.Verdict != nil {
		verdict = r.Verdict.Status
	}
	switch t := r.Totals; {
	case q.Model != "" && (t == nil || !slices.ContainsFunc(t.Models, func(m string) bool { return strings.Contains(m, q.Model) })),
		q.MinCost > 0 && (t == nil || t.PricedUSD < q.MinCost),
		q.MinDuration > 0 && (t == nil || t.DurationMS < q.MinDuration.Milliseconds()),
		len(q.Verdicts) > 0 && !slices.Contains(q.Verdicts, verdict):
		return false
	}
	return q.Grep == nil || q.found(r.Recording)
}

// found looks for Grep up to its first place.
func (q *Query) found(rec *recording.Recording) (found bool) {
	_ = account.Texts(rec, func(what, text string) bool { // what cannot be read holds nothing
		found = what != account.TextOutput && q.Grep.MatchString(text)
		return !found
	})
	return found
}

// Tree puts forks below their parents, as far as these are among rows, in the order in which rows stand otherwise.
func Tree(rows []Row) []Row {
	at := make(map[string]bool)
	for i := range rows {
		if rec := rows[i].Recording; rec != nil {
			at[rec.Manifest.ID] = true
		}
	}
	below := make(map[string][]Row)
	for _, r := range rows {
		parent := ""
		if r.Recording != nil && r.Recording.Manifest.Parent != nil && at[*r.Recording.Manifest.Parent] {
			parent = *r.Recording.Manifest.Parent
		}
		below[parent] = append(below[parent], r)
	}
	out := make([]Row, 0, len(rows))
	var put func(parent string, depth int)
	put = func(parent string, depth int) {
		rows := below[parent]
		delete(below, parent) // whoever names himself his parent ends here
		for _, r := range rows {
			r.Depth = depth
			if out = append(out, r); r.Recording != nil {
				put(r.Recording.Manifest.ID, depth+1)
			}
		}
	}
	put("", 0)
	for _, r := range rows { // parents in a circle, which no recorder writes
		if r.Recording != nil && r.Recording.Manifest.Parent != nil && len(below[*r.Recording.Manifest.Parent]) > 0 {
			put(*r.Recording.Manifest.Parent, 0)
		}
	}
	return out
}

// dayForms are how a day and a time of a day are written, days first.
var dayForms = []string{time.DateOnly, "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"}

// ParseTime reads a moment: a date, with a time or without, as it is where now is; an age, as in 2d, 12h or 90m; today, yesterday or a day
// of the last week by its name. Of a day it returns the begin, or with end the begin of the next.
func ParseTime(s string, now time.Time, end bool) (time.Time, error) {
	day := func(t time.Time) time.Time {
		if end {
			t = t.AddDate(0, 0, 1)
		}
		return t
	}
	for i, form := range dayForms {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			if i == 0 {
				t = day(t)
			}
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if age, err := ParseAge(s); err == nil {
		return now.Add(-age), nil
	}
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	for back := range 7 {
		t := today.AddDate(0, 0, -back)
		name := strings.ToLower(t.Weekday().String())
		if w := strings.ToLower(s); w == name || w == name[:3] || back == 0 && w == "today" || back == 1 && w == "yesterday" {
			return day(t), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want a date (2026-11-27, 2026-11-27 15:04), an age (2d, 12h, 90m) or a day (today, yesterday, monday)", s)
}

// ParseAge reads a duration of Go, or days, as in 30d.
func ParseAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(n) * 24 * time.Hour
		if n > 100_000 {
			err = strconv.ErrRange
		}
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want an age, as in 30d or 12h", s)
	}
	return d, nil
}

// What is known of a recording beside what it holds stands in small files of its name beside it and beside pointers, never inside one: a
// seal covers what lies there. Each is written whole, by whoever comes to know it, and is derived: who deletes it loses a column of the
// list, or the time to make it again.
const verdictExt = ".verdict" // how the last replay ended

// The kinds of longer ones (KeepDerived).
const (
	Index  = ".index"  // what a page needs to know of the tape (package page)
	Report = ".report" // how the last replay was held against the recording: a Judgement
)

// derivedExts are all of them.
var derivedExts = []string{verdictExt, ".totals", Index, Report} // older versions kept totals so

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
	value, _ := json.Marshal(&v) // texts and a time: it cannot fail
	for name := range namesOf(rec) {
		keepAt(rec.Manifest, name+verdictExt, value, nil)
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
	if filepath.Base(filepath.Dir(rec.Dir)) == Name && filepath.Ext(rec.Dir) == recordingExt {
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

// verdict is that of e's last replay, which lies in the library's directory; nil where nobody has replayed it since it stands there.
func (e *Entry) verdict(dir string) *Verdict {
	if !e.beside[e.Name+verdictExt] {
		return nil
	}
	v := new(Verdict)
	if b, _ := read(e.Recording.Manifest, filepath.Join(dir, e.Name+verdictExt)); b == nil || json.Unmarshal(b, v) != nil {
		return nil
	}
	return v
}

// totals are what e comes to; nil where its tape cannot be read, or known says that it is not to be.
func (e *Entry) totals(known bool) *recording.Totals {
	if known {
		return e.Recording.Manifest.Totals
	}
	t, _ := account.TotalOf(e.Recording) // nil beside an error
	return t
}

// forget removes what was derived of the recording at a path, without its ending.
func forget(path string) error {
	var errs []error
	for _, ext := range derivedExts {
		errs = append(errs, recording.Gone(os.Remove(path+ext)))
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
