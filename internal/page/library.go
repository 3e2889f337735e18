package page

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/compare"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A Shelf is some recordings that are shown together: those of a file.
type Shelf struct {
	Library Library
	Sources []*Source // in the order of Library.Runs

	comparison *Comparison // nil for none
}

// NewShelf opens recordings, of which several are held against each other.
func NewShelf(ctx context.Context, recs []*recording.Recording, prices *llm.Prices) (*Shelf, error) {
	s := &Shelf{Library: Library{Runs: []Run{}, Absent: []Absent{}, Problem: []Problem{}}}
	taken := make(map[string]int)
	for _, rec := range recs {
		src, err := Open(rec, prices)
		if err != nil {
			return nil, err
		}
		if taken[src.ID]++; taken[src.ID] > 1 { // a copy
			src.ID += "-" + strconv.Itoa(taken[src.ID])
		}
		s.Sources = append(s.Sources, src)
		s.Library.Runs = append(s.Library.Runs, rowOf(src.ID, rec, rec.Manifest.Totals, library.VerdictOf(rec)))
	}
	s.Library.Title = s.title()
	if len(recs) > 1 && len(recs) <= compare.Most {
		c, err := compare.Run(ctx, recs, &compare.Options{Prices: prices})
		if err != nil {
			return nil, err
		}
		s.comparison, s.Library.Compare = &Comparison{Comparison: c}, true
		for _, src := range s.Sources {
			s.comparison.Runs = append(s.comparison.Runs, src.ID)
		}
	}
	s.Library.Open = s.opens()
	return s, nil
}

func (s *Shelf) title() string {
	switch runs := s.Library.Runs; len(runs) {
	case 1:
		return titled(strings.Join(runs[0].Argv, " "))
	default:
		return fmt.Sprintf("%d runs", len(runs))
	}
}

// opens is where the page opens: several runs at what they differ in, one that did not replay faithfully at why, else at the run.
func (s *Shelf) opens() string {
	switch runs := s.Library.Runs; {
	case s.comparison != nil:
		return "compare"
	case len(runs) == 1 && runs[0].Verdict != nil && runs[0].Verdict.Status != "faithful" && library.JudgementOf(s.Sources[0].rec) != nil:
		return "run/" + runs[0].ID + "/report"
	case len(runs) == 1:
		return "run/" + runs[0].ID
	}
	return ""
}

// Document returns the document at a path.
func (s *Shelf) Document(ctx context.Context, path string) ([]byte, error) {
	switch {
	case path == "library.json":
		return mustJSON(&s.Library), nil
	case path == "compare.json" && s.comparison != nil:
		return mustJSON(s.comparison), nil
	}
	rest, ok := strings.CutPrefix(path, "run/")
	id, rest, _ := strings.Cut(rest, "/")
	for _, src := range s.Sources {
		if ok && src.ID == id {
			return src.Document(ctx, rest)
		}
	}
	return nil, ErrNoDocument
}
