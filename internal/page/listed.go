package page

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A listed is library.json as it was made last, with what it was made of.
type listed struct {
	rows    []library.Row
	state   string // of those; "" where it may change without being seen
	library *Library
	dirs    map[string]string // by id
	json    []byte
}

// list makes library.json, the newest run first. It is made once for all who ask at a time, and stands while nothing changes.
func (s *Stacks) list() *listed {
	s.listing.Lock()
	defer s.listing.Unlock()
	if s.last != nil && s.last.state != "" {
		if state, _ := s.state(s.last.rows); state == s.last.state {
			return s.last
		}
	}
	began := time.Now()
	rows, problems := s.find()
	out := &listed{rows: rows, dirs: make(map[string]string, len(rows))}
	out.library = s.libraryOf(out, problems)
	out.json = mustJSON(out.library)
	if state, newest := s.state(rows); newest.Before(began.Add(-coarse)) && s.elsewhere == nil {
		out.state = state
	}
	s.last = out
	s.mu.Lock()
	s.dirs = out.dirs
	s.mu.Unlock()
	return out
}

// libraryOf fills in a list.
func (s *Stacks) libraryOf(l *listed, problems []Problem) *Library {
	out := &Library{
		Title: s.title, Live: true, Runs: make([]Run, 0, len(l.rows)), Absent: []Absent{}, Problem: append([]Problem{}, problems...), Compare: len(s.held) > 0,
	}
	if s.Daemon != nil {
		out.Daemon = s.Daemon.URL
	}
	for _, row := range slices.Backward(l.rows) {
		if row.Recording == nil {
			out.Problem = append(out.Problem, Problem{row.Name, row.Err.Error()})
			continue
		}
		id := idOf(row.Recording.Manifest.ID)
		for n := 2; l.dirs[id] != ""; n++ { // copies
			id = idOf(row.Recording.Manifest.ID) + "-" + strconv.Itoa(n)
		}
		l.dirs[id] = row.Recording.Dir
		out.Runs = append(out.Runs, rowOf(id, row.Recording, row.Totals, row.Verdict))
	}
	switch {
	case out.Compare:
		out.Open = "compare"
	case len(out.Runs) == 1:
		out.Open = "run/" + out.Runs[0].ID
	}
	return out
}

// coarse is how far apart two changes of a file may be that leave it with one time.
const coarse = 100 * time.Millisecond

// state says how that stands of which a list is made, and when any of it changed last: where runs are found, their manifests, the
// directories that verdicts lie in, and whether one that is not finished is being recorded.
func (s *Stacks) state(rows []library.Row) (state string, newest time.Time) {
	var b strings.Builder
	seen := make(map[string]bool)
	note := func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		var at time.Time
		if st, err := os.Stat(path); err == nil {
			at = st.ModTime()
		}
		if at.After(newest) {
			newest = at
		}
		fmt.Fprintln(&b, path, at.UnixNano())
	}
	for _, place := range s.places() {
		note(place)
	}
	if here, err := library.At(""); err == nil {
		note(here.Dir)
	}
	for i := range rows {
		note(rows[i].Path)
		rec := rows[i].Recording
		if rec == nil {
			continue
		}
		note(filepath.Join(rec.Dir, recording.ManifestName))
		note(filepath.Dir(rec.Dir))
		note(library.Of(rec.Manifest.Roots.Tree).Dir)
		if !rec.Finished() {
			fmt.Fprintln(&b, rec.Live())
		}
	}
	return b.String(), newest
}
