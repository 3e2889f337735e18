package httptape

import (
	"bytes"
	"fmt"
	"iter"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// inUse are the tapes that Transports of this process have open, by absolute path.
var inUse sync.Map

// use takes a tape for one Transport: two of one tape would each see half of what is asked, or write over each other.
func use(real, path string) error {
	if _, taken := inUse.LoadOrStore(real, true); taken {
		return fmt.Errorf("%w: %s is open in this process: give each test a tape of its own, or close the first", ErrInUse, path)
	}
	return nil
}

// A workshop is where a recording is made. It is in memory: what was written before a secret in it was known goes with the process,
// however that ends.
type workshop struct {
	tape  bytes.Buffer
	store *cas.Memory
	rec   *tape.Recorder
}

func newWorkshop(rules int) (*workshop, error) {
	w := &workshop{store: cas.NewMemory()}
	tw, err := tape.NewWriter(&w.tape, header(rules))
	if err != nil {
		return nil, err
	}
	w.rec = tape.NewRecorder(tw, &tape.RecorderOptions{Store: w.store})
	return w, nil
}

// producer is what tapes name as theirs. A tape of another version keeps its name while its records stay: see writeTape.
const producer = producerName + version.Version

const producerName = "tapedeck httptape "

// header is that of a tape whose secrets were found by these rules.
func header(rules int) *tape.Header {
	return &tape.Header{Producer: producer, Argv: []string{}, Extra: []tape.Field{bare.RulesField(rules)}}
}

// readTape reads a whole tape, and by which rules its secrets were found. A torn one is an error: it is a file that people
// keep.
func readTape(path string) (records []*tape.Record, rules int, err error) {
	f, err := tape.Open(path, nil)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if rules, err = bare.RulesOf(f.Header()); err != nil {
		return nil, 0, err
	}
	records, err = collect(f.Records())
	return records, rules, err
}

func collect(seq iter.Seq2[*tape.Record, error]) ([]*tape.Record, error) {
	var records []*tape.Record
	for r, err := range seq {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}
