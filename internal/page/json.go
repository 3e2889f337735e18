package page

import (
	"context"
	"io"
)

// A Document is a run as one piece of JSON: what its page shows, but for payloads and single records.
type Document struct {
	*Detail
	Turns   []*Turn `json:"turns"`        // of all conversations, one behind the other
	History []File  `json:"file_history"` // of each file, as files/B.json has it
	Last    *Report `json:"last_replay"`  // null for none
}

// WriteJSON writes the runs of a shelf as one object: Document each, and how they compare.
func (s *Shelf) WriteJSON(ctx context.Context, w io.Writer) (*Written, error) {
	out := struct {
		Version    int         `json:"version"`
		Runs       []*Document `json:"runs"`
		Comparison *Comparison `json:"comparison,omitempty"`
	}{1, []*Document{}, s.comparison}
	for _, src := range s.Sources {
		d, err := src.all(ctx)
		if err != nil {
			return nil, err
		}
		out.Runs = append(out.Runs, d)
	}
	count := &counting{w: w}
	_, err := count.Write(append(mustJSON(&out), '\n'))
	return &Written{Documents: len(out.Runs), Bytes: count.n, Absent: []Absent{}, Problems: append(s.problems(ctx), s.Library.Problem...)}, err
}

// all makes the document of a run.
func (r *Source) all(ctx context.Context) (*Document, error) {
	d := &Document{Detail: r.detail(ctx), Turns: []*Turn{}, History: []File{}}
	d.Last, _ = r.report() // there may be none
	s, err := r.sum()
	if err != nil {
		return d, nil //nolint:nilerr // a problem of the run, which stands in its detail
	}
	for i := range s.Conversations {
		for j := range s.Conversations[i].Turns {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			t, err := r.turn(s.Conversations[i].Turns[j].Seq)
			if err != nil {
				return nil, err
			}
			d.Turns = append(d.Turns, t)
		}
	}
	history, err := r.histories()
	d.History = append(d.History, history...)
	return d, err
}
