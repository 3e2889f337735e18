package library

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
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

// Rows returns what q chooses, oldest first.
func (l *Library) Rows(q *Query) ([]Row, error) {
	entries, err := l.List()
	if err != nil {
		return nil, err
	}
	rows, fits := make([]Row, len(entries)), make([]bool, len(entries))
	recording.Each(context.Background(), len(rows), 0, func(i int) {
		r := &rows[i]
		if r.Entry = entries[i]; r.Recording != nil && q.early(r.Recording.Manifest) {
			r.Totals, r.Verdict = l.totals(&r.Entry, q.Known), new(Verdict)
			if !l.read(&r.Entry, verdictExt, r.Verdict) { // nobody has replayed it since it stands there
				r.Verdict = nil
			}
			fits[i] = q.fits(r)
		} else {
			fits[i] = r.Recording == nil && q.all()
		}
	})
	i := -1
	return slices.DeleteFunc(rows, func(Row) bool { i++; return !fits[i] }), nil
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
