package testbench

import (
	"iter"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A recorded is a tape that was read: what a replay answers from, and what a run is compared with.
type recorded struct {
	path    string
	header  *tape.Header
	records []*tape.Record
	store   cas.Store
	foreign bool // written by another producer: it answers each kind in recorded order
	bare    bool // without the keys that ours alone have, whoever wrote it
	torn    bool // its last line was cut, as a killed run leaves it
	env     envTape

	mu     sync.Mutex // guards what follows
	own    own
	random []*tape.RandomRead
	inputs map[string][]*tape.FileRead // by path
	clock  map[string][]*tape.Record   // readings by source
}

// readTape reads the tape at path, or that of a recording. A torn last line, which a killed run leaves, is left out.
func readTape(path string) (*recorded, error) {
	path = TapePath(path)
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &recorded{path: path, header: f.Header(), store: f.Store}
	for rec, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		r.records = append(r.records, rec)
	}
	r.torn = f.Torn()
	r.foreign = !strings.HasPrefix(r.header.Producer, producer)
	r.bare = r.foreign || isBare(r.records)
	return r, nil
}

// index sorts out what this package itself answers.
func (r *recorded) index() {
	r.env = envTape{reads: make(map[string][]*tape.Payload), foreign: r.foreign}
	r.clock = make(map[string][]*tape.Record)
	r.inputs = make(map[string][]*tape.FileRead)
	for _, rec := range r.records {
		switch k := rec.Kind.(type) {
		case *tape.EnvRead:
			r.env.add(k)
		case *tape.RandomRead:
			r.random = append(r.random, k)
		case *tape.FileRead:
			r.inputs[k.Path] = append(r.inputs[k.Path], k)
		case *tape.ClockRead:
			r.clock[k.Source] = append(r.clock[k.Source], rec)
		}
	}
}

// all yields the records, as the axes take them.
func (r *recorded) all() iter.Seq2[*tape.Record, error] { return each(r.records) }

func each(records []*tape.Record) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// payloadsOf is fidelity.TapeOptions.Payload of two stores.
func payloadsOf(recorded, replay cas.Store) func(p *tape.Payload, s fidelity.Side) ([]byte, error) {
	return func(p *tape.Payload, s fidelity.Side) ([]byte, error) {
		if s == fidelity.Recorded {
			return p.Bytes(recorded)
		}
		return p.Bytes(replay)
	}
}
