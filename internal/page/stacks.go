package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Stacks are the recordings of a library, or of directories, that a server shows. What is in them is looked up each time: runs come, grow
// and go. Of a recording that nobody looks at its recording.json is read alone.
type Stacks struct {
	Daemon *Daemon // whose runs are shown too; nil for none; set before a server shows anything

	title  string
	prices *llm.Prices
	find   func() ([]library.Row, []Problem)
	places func() []string // where find finds what it finds
	poll   time.Duration   // pollEvery
	tell   time.Duration   // tellEvery

	listing sync.Mutex // held while the list is made
	last    *listed    // guarded by listing; nil where nobody has asked

	mu   sync.Mutex
	dirs map[string]string  // by id; guarded by mu
	open map[string]*opened // by id; guarded by mu
	used []string           // ids of open, the one that was used last at the end; guarded by mu

	elsewhere *Elsewhere // nil where recordings lie here

	held      []string   // recordings, where several were named
	comparing sync.Mutex // held while they are compared
	both      *Shelf     // their comparison; guarded by comparing
}

// An opened is a run whose documents were asked for. Who asks first opens it while the others wait.
type opened struct {
	mu  sync.Mutex
	src *Source // guarded by mu
}

// maxOpen is how many recordings are held open: of each what is known of its tape.
const maxOpen = 16

// ShowDir shows the library that a directory is or holds, or else all recordings up to three levels below it; nil where it is itself a
// recording, or no directory.
func ShowDir(dir string, prices *llm.Prices) (*Stacks, error) {
	if !recording.IsDir(dir) || library.HoldsRecording(dir) {
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, at := range []string{dir, filepath.Dir(dir)} {
		if lib := library.Of(at); recording.IsDir(lib.Dir) && (at == dir || lib.Dir == dir) {
			return ShowLibrary(lib, prices), nil
		}
	}
	s := newStacks(dir, prices)
	s.places = func() []string { return recordingsBelow(dir, 3) }
	s.find = func() ([]library.Row, []Problem) { return rowsOf(s.places()), nil }
	return s, nil
}

// recordingsBelow lists the directories of recordings below one.
func recordingsBelow(dir string, levels int) (found []string) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, n := range names {
		path := filepath.Join(dir, n.Name())
		switch {
		case !n.IsDir():
		case library.HoldsRecording(path):
			found = append(found, path)
		case levels > 1:
			found = append(found, recordingsBelow(path, levels-1)...)
		}
	}
	return found
}

// rowsOf are recordings by their directories, oldest first.
func rowsOf(dirs []string) (rows []library.Row) {
	for _, dir := range dirs {
		row := library.Row{Entry: library.Entry{Name: filepath.Base(dir), Path: dir}}
		row.Recording, row.Err = recording.OpenHead(dir)
		if row.Recording != nil {
			row.Totals, row.Verdict = row.Recording.Manifest.Totals, library.VerdictOf(row.Recording)
		}
		rows = append(rows, row)
	}
	started := func(r *library.Row) int64 {
		if r.Recording == nil {
			return 0
		}
		return r.Recording.Manifest.StartedAt.UnixMilli()
	}
	slices.SortStableFunc(rows, func(a, b library.Row) int { return cmp.Compare(started(&a), started(&b)) })
	return rows
}

// ShowLibrary shows a library.
func ShowLibrary(lib *library.Library, prices *llm.Prices) *Stacks {
	s := newStacks(filepath.Dir(lib.Dir), prices)
	s.places = func() []string { return []string{lib.Dir} }
	s.find = func() ([]library.Row, []Problem) {
		rows, err := lib.Rows(&library.Query{Known: true})
		if err != nil {
			return nil, []Problem{{lib.Dir, err.Error()}}
		}
		return rows, nil
	}
	return s
}

// Elsewhere says how recordings are had that do not lie here. Its functions may be called by several goroutines at once.
type Elsewhere struct {
	Rows   func() ([]library.Row, error)                          // oldest first, with the directory that each would have
	Fill   func(dir string) error                                 // makes that directory, which is not there
	Search func(ctx context.Context, text string) (*Found, error) // in all of them
}

// ShowElsewhere shows recordings, each of which comes to its directory when it is looked at first.
func ShowElsewhere(title string, e *Elsewhere, prices *llm.Prices) *Stacks {
	s := newStacks(title, prices)
	s.elsewhere = e
	s.places = func() []string { return nil }
	s.find = func() ([]library.Row, []Problem) {
		rows, err := e.Rows()
		if err != nil {
			return nil, []Problem{{title, err.Error()}}
		}
		return rows, nil
	}
	return s
}

// ShowRecordings shows recordings by their directories; several can be compared.
func ShowRecordings(title string, dirs []string, prices *llm.Prices) *Stacks {
	s := newStacks(title, prices)
	if len(dirs) > 1 {
		s.held = dirs
	}
	s.places = func() []string { return dirs }
	s.find = func() ([]library.Row, []Problem) { return rowsOf(dirs), nil }
	return s
}

func newStacks(title string, prices *llm.Prices) *Stacks {
	return &Stacks{title: title, prices: prices, poll: pollEvery, tell: tellEvery, dirs: make(map[string]string), open: make(map[string]*opened)}
}

// source returns the documents of a run. One that was being recorded when it was looked at last is looked at again.
func (s *Stacks) source(id string) (*Source, error) {
	dir, run := s.opened(id)
	if run == nil { // nobody has asked for the list, or it is newer than that
		s.list()
		dir, run = s.opened(id)
	}
	switch {
	case run == nil:
		return nil, ErrNoDocument
	case s.elsewhere == nil && !recording.IsDir(dir):
		return nil, errRemoved
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if s.elsewhere != nil {
		if err := s.elsewhere.Fill(dir); err != nil {
			return nil, err
		}
	}
	if src := run.src; src != nil && src.rec.Dir == dir && (src.rec.Finished() || src.current()) {
		return src, nil
	}
	src, err := s.read(id, dir)
	if err == nil {
		run.src = src
	}
	return src, err
}

// opened returns where a run is, and what is held of it; nil where none is known by that id.
func (s *Stacks) opened(id string) (dir string, run *opened) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir = s.dirs[id]; dir == "" {
		return "", nil
	}
	if s.open[id] == nil {
		s.open[id] = new(opened)
	}
	s.use(id)
	return dir, s.open[id]
}

// read opens a recording that is not held.
func (s *Stacks) read(id, dir string) (*Source, error) {
	rec, err := recording.Open(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, recording.ErrNotRecording) {
		return nil, errRemoved
	}
	if err != nil {
		return nil, err
	}
	src, err := Open(rec, s.prices)
	if err == nil {
		src.ID = id
	}
	return src, err
}

// use notes that a source is used, and lets go of the one that was used least lately. s.mu is held.
func (s *Stacks) use(id string) {
	s.used = append(slices.DeleteFunc(s.used, func(other string) bool { return other == id }), id)
	if len(s.used) > maxOpen {
		delete(s.open, s.used[0])
		s.used = s.used[1:]
	}
}

// Document returns the document at a path.
func (s *Stacks) Document(ctx context.Context, path string) ([]byte, error) {
	switch path {
	case "library.json":
		return s.list().json, nil
	case "compare.json":
		return s.compared(ctx)
	}
	rest, ok := strings.CutPrefix(path, "run/")
	id, rest, _ := strings.Cut(rest, "/")
	if !ok {
		return nil, ErrNoDocument
	}
	src, err := s.source(id)
	if err != nil {
		return nil, err
	}
	return src.Document(ctx, rest)
}

// index is run/ID/index.json in gzip, as it is kept.
func (s *Stacks) index(path string) ([]byte, error) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(path, "run/"), "/")
	if rest != "index.json" {
		return nil, ErrNoDocument
	}
	src, err := s.source(id)
	if err != nil {
		return nil, err
	}
	sum, err := src.sum()
	if err != nil {
		return nil, err
	}
	if src.rec.Finished() {
		go func() { _, _ = src.files.listing() }() // who looks at a run may look at its files next: its error comes with them
	}
	return sum.index, nil
}

// compared makes compare.json, of recordings that were named, once.
func (s *Stacks) compared(ctx context.Context) ([]byte, error) {
	if len(s.held) == 0 {
		return nil, ErrNoDocument
	}
	s.comparing.Lock()
	defer s.comparing.Unlock()
	if s.both == nil {
		var recs []*recording.Recording
		for _, dir := range s.held {
			rec, err := recording.Open(dir)
			if err != nil {
				return nil, err
			}
			recs = append(recs, rec)
		}
		both, err := NewShelf(ctx, recs, s.prices)
		if err != nil {
			return nil, err
		}
		s.both = both
	}
	return s.both.Document(ctx, "compare.json")
}

// searchTime bounds a search through a whole library.
const searchTime = 10 * time.Second

// search looks into one run, or where that is "" into all, the newest first.
func (s *Stacks) search(ctx context.Context, run, text string) (*Found, error) {
	if run != "" {
		src, err := s.source(run)
		if err != nil {
			return nil, err
		}
		return src.Search(ctx, text)
	}
	if s.elsewhere != nil {
		return s.elsewhere.Search(ctx, text)
	}
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	out := &Found{Hits: []Hit{}}
	all := s.list()
	for _, row := range all.library.Runs {
		src, err := s.read(row.ID, all.dirs[row.ID]) // which lets go of none that somebody looks at
		if err != nil {
			continue // it has gone meanwhile, or is damaged: the list says so
		}
		found, err := src.Search(limited, text)
		if err != nil {
			out.More = true
			break
		}
		out.Hits, out.More = append(out.Hits, found.Hits...), out.More || found.More
		if len(out.Hits) > maxHits {
			out.Hits, out.More = out.Hits[:maxHits], true
			break
		}
	}
	return out, ctx.Err()
}

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
	out.json = jsonscan.MustMarshal(out.library)
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
