package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/compare"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
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
		src.whole = true
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

// opens is where the page opens: several runs at what they differ in, one whose last replay was not faithful at why, else at the run.
func (s *Shelf) opens() string {
	if s.comparison != nil {
		return "compare"
	}
	if len(s.Sources) != 1 {
		return ""
	}
	src := s.Sources[0]
	switch j := library.JudgementOf(src.rec); {
	case j != nil && len(j.Report.Divergences) > 0:
		return "run/" + src.ID + "/report/0"
	case j != nil && !j.Report.Faithful():
		return "run/" + src.ID + "/report"
	}
	return "run/" + src.ID
}

// Document returns the document at a path.
func (s *Shelf) Document(ctx context.Context, path string) ([]byte, error) {
	switch {
	case path == "library.json":
		return jsonscan.MustMarshal(&s.Library), nil
	case path == "compare.json" && s.comparison != nil:
		return jsonscan.MustMarshal(s.comparison), nil
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

// problems are those of all runs, each with the name of its run before its path.
func (s *Shelf) problems(ctx context.Context) []Problem {
	out := []Problem{}
	for _, src := range s.Sources {
		d := src.detail(ctx)
		for _, p := range d.Problems {
			out = append(out, Problem{d.Name + "/" + p.Path, p.What})
		}
	}
	return out
}

// sizeOf is how long the payload at a path is on the disk.
func (s *Shelf) sizeOf(path string) int64 {
	id, digest, _ := strings.Cut(strings.TrimPrefix(path, "run/"), "/payload/")
	d, err := cas.Parse(digest[:min(len(digest), 2*cas.Size)])
	for _, src := range s.Sources {
		if err == nil && src.ID == id && src.store != nil {
			n, _ := src.store.Size(d) // 0 for what is not there
			return n
		}
	}
	return 0
}

// Documents are the paths of what a shelf has, in the order in which a reader wants them: what the first view needs, then turns, records,
// files, terminals, and last the payloads.
type Documents struct {
	First, Turns, Records, Rest []string
	Payloads                    []string // blobs that records name, in their order, each once
	Unchanged                   int      // files that a run found and left alone, whose contents are not among Payloads
	UnchangedBytes              int64    // of those

	sizes map[string]int64 // of Payloads, by path, as they lie on the disk
}

// payload lists a payload of a run at a path, once.
func (d *Documents) payload(at string, p *Payload) {
	if p == nil || p.Digest == "" {
		return
	}
	if path := at + "payload/" + p.Digest; d.sizes[path] == 0 {
		d.sizes[path] = max(p.Size, 1)
		d.Payloads = append(d.Payloads, path)
	}
}

// Documents lists what there is.
func (s *Shelf) Documents(ctx context.Context) (*Documents, error) {
	d := &Documents{sizes: make(map[string]int64)}
	if s.comparison != nil {
		d.First = append(d.First, "compare.json")
	}
	for _, src := range s.Sources {
		if err := src.documents(ctx, d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (r *Source) documents(ctx context.Context, d *Documents) error {
	at := "run/" + r.ID + "/"
	sum, err := r.sum()
	if err != nil {
		d.First = append(d.First, at+"run.json") // which says why
		return nil
	}
	d.First = append(d.First, at+"run.json", at+"index.json")
	if _, err := r.report(); err == nil {
		d.First = append(d.First, at+"report.json")
	}
	for i := range sum.Conversations {
		for j := range sum.Conversations[i].Turns {
			d.Turns = append(d.Turns, fmt.Sprintf("%sturn/%d.json", at, sum.Conversations[i].Turns[j].Seq))
		}
	}
	for b := range sum.Blocks {
		d.Records = append(d.Records, fmt.Sprintf("%srecords/%d.json", at, b))
	}
	d.Rest = append(d.Rest, at+"files.json")
	files, err := r.files.histories()
	for b := 0; b*blockFiles < len(files); b++ {
		d.Rest = append(d.Rest, fmt.Sprintf("%sfiles/%d.json", at, b))
	}
	if r.detail(ctx).Terminal {
		d.Rest = append(d.Rest, at+"terminal.json")
	}
	if err := errors.Join(err, r.payloads(at, d)); err != nil {
		return err
	}
	contents(files, at, d)
	return nil
}

// payloads lists the blobs that records name: of exchanges as they are named in turns, decoded where they came encoded.
func (r *Source) payloads(at string, d *Documents) error {
	return r.lines(0, func(line []byte) bool {
		rec, err := tape.ParseRecord(line)
		if err != nil {
			return true // the header; damage the summary tells of
		}
		if x := tape.ExchangeOf(rec.Kind); x != nil {
			d.payload(at, payloadOf(x.RequestPayload, x.RequestHeaders))
			d.payload(at, payloadOf(x.Response, x.ResponseHeaders))
			return true
		}
		for _, p := range tape.Payloads(rec.Kind) {
			d.payload(at, payloadOf(p, nil))
		}
		return true
	})
}

// contents lists what stood in files that a run changed, and counts those that it left alone: their contents are not listed.
func contents(files []File, at string, d *Documents) {
	for i := range files {
		before := files[i].Before
		switch {
		case before == nil || before.Bytes == nil:
		case len(files[i].States) == 0:
			d.Unchanged++
			d.UnchangedBytes += before.Bytes.Size
		default:
			d.payload(at, before.Bytes)
		}
		for _, state := range files[i].States {
			d.payload(at, state.Bytes)
		}
	}
}

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
	_, err := count.Write(append(jsonscan.MustMarshal(&out), '\n'))
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
			t, err := r.turns.document(s.Conversations[i].Turns[j].Seq)
			if err != nil {
				return nil, err
			}
			d.Turns = append(d.Turns, t)
		}
	}
	history, err := r.files.histories()
	d.History = append(d.History, history...)
	return d, err
}
