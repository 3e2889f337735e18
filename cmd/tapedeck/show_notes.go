package main

import (
	"io"

	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// inTimeline is what a note begins with in the columns of a timeline, below those of its event.
const inTimeline = "\t\t\t\t"

// showNotes writes what was noted about the event seq, a note a line, each behind indent.
func (s *shown) showNotes(w io.Writer, seq uint64, indent string) error {
	for _, a := range s.begunAt(seq) {
		if _, err := visible.Fprintf(w, indent+"noted: %s\n", a.String()); err != nil {
			return err
		}
	}
	return nil
}

// foreignNotes says on stderr where the notes were made for another tape than the one that is shown.
func (s *shown) foreignNotes(w io.Writer) {
	if s.notes == nil || len(s.notes.Annotations) == 0 {
		return
	}
	if of, err := s.notes.Of(s.path); err == nil && !of {
		visible.Fprintln(w, "tapedeck: the notes were made for another tape: what they say of its events may not hold here (tapedeck annotate check)")
	}
}

// begunAt are the notes that stand below the event seq: of a span that is the first one.
func (s *shown) begunAt(seq uint64) (notes []*annotations.Annotation) {
	for _, a := range s.notes.About(seq) {
		if a.EventID == seq {
			notes = append(notes, a)
		}
	}
	return notes
}
