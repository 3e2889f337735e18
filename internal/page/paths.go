package page

import (
	"context"
	"errors"
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
	files, err := r.histories()
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
