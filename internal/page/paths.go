package page

import (
	"context"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Documents are the paths of what a shelf has, in the order in which a reader wants them: what the first view needs, then turns, records,
// files, terminals, and last the payloads.
type Documents struct {
	First, Turns, Records, Rest []string
	Payloads                    []string // blobs that records name, in their order, each once
	Unchanged                   int      // files that a run found and left alone, whose contents are not among Payloads
}

// Documents lists what there is.
func (s *Shelf) Documents(ctx context.Context) (*Documents, error) {
	d := new(Documents)
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
	if detail, err := r.detail(ctx); err == nil && detail.Terminal {
		d.Rest = append(d.Rest, at+"terminal.json")
	}
	return r.payloads(at, d)
}

// payloads lists the blobs that records name: of exchanges as they are named in turns, decoded where they came encoded.
func (r *Source) payloads(at string, d *Documents) error {
	seen := make(map[string]bool)
	add := func(p *Payload) {
		if p != nil && p.Text == nil && !seen[p.Digest] {
			seen[p.Digest] = true
			d.Payloads = append(d.Payloads, at+"payload/"+p.Digest)
		}
	}
	return r.lines(0, func(line []byte) bool {
		rec, err := tape.ParseRecord(line)
		if err != nil {
			return true // the header; damage the summary tells of
		}
		if x := tape.ExchangeOf(rec.Kind); x != nil {
			add(payloadOf(x.RequestPayload, x.RequestHeaders))
			add(payloadOf(x.Response, x.ResponseHeaders))
			return true
		}
		for _, p := range tape.Payloads(rec.Kind) {
			add(payloadOf(p, nil))
		}
		return true
	})
}

// sizeOfBlob is how long the payload at a path is as it lies there.
func (r *Source) sizeOfBlob(digest string) int64 {
	d, err := cas.Parse(digest[:min(len(digest), 2*cas.Size)])
	if err != nil || r.store == nil {
		return 0
	}
	n, err := r.store.Size(d)
	if err != nil {
		return 0
	}
	return n
}
