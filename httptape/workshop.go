package httptape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A draft is a cas.Store whose blobs stand in one file that no directory names: what was written before a secret in it was
// known goes with the process, however that ends.
type draft struct {
	f *os.File

	mu    sync.Mutex // guards what follows
	end   int64      // of what is given away of the file
	blobs map[cas.Digest][]extent
}

// An extent is a piece of a blob.
type extent struct{ at, n int64 }

// pieceSize is the length in bytes of the longest piece that is written at once.
const pieceSize = 64 << 10

func newDraft() (*draft, error) {
	f, err := bare.UnnamedFile()
	if err != nil {
		return nil, err
	}
	return &draft{f: f, blobs: make(map[cas.Digest][]extent)}, nil
}

func (s *draft) close() error { return s.f.Close() }

// write puts a piece where nothing else stands.
func (s *draft) write(b []byte) (extent, error) {
	s.mu.Lock()
	e := extent{s.end, int64(len(b))}
	s.end += e.n
	s.mu.Unlock()
	_, err := s.f.WriteAt(b, e.at)
	return e, err
}

// add gives pieces their name. Those of a blob that is there already are wasted.
func (s *draft) add(d cas.Digest, pieces []extent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.blobs[d]; !ok {
		s.blobs[d] = pieces
	}
}

func (s *draft) pieces(d cas.Digest) ([]extent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pieces, ok := s.blobs[d]
	if !ok {
		return nil, &cas.MissingError{Digest: d}
	}
	return pieces, nil
}

// Put implements cas.Store.
func (s *draft) Put(b []byte) (cas.Digest, error) {
	d := cas.Sum(b)
	if _, err := s.pieces(d); err == nil {
		return d, nil
	}
	e, err := s.write(b)
	if err != nil {
		return cas.Digest{}, err
	}
	s.add(d, []extent{e})
	return d, nil
}

// PutReader implements cas.Store.
func (s *draft) PutReader(r io.Reader) (cas.Digest, int64, error) {
	var pieces []extent
	var total int64
	hash, buf := cas.NewHasher(), make([]byte, pieceSize)
	for {
		n, err := io.ReadFull(r, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return cas.Digest{}, 0, err
		}
		if n > 0 {
			hash.Write(buf[:n])
			e, err := s.write(buf[:n])
			if err != nil {
				return cas.Digest{}, 0, err
			}
			pieces, total = append(pieces, e), total+e.n
		}
		if end {
			d := hash.Sum()
			s.add(d, pieces)
			return d, total, nil
		}
	}
}

// Get implements cas.Store.
func (s *draft) Get(d cas.Digest) ([]byte, error) {
	r, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Open implements cas.Store.
func (s *draft) Open(d cas.Digest) (io.ReadCloser, error) {
	pieces, err := s.pieces(d)
	if err != nil {
		return nil, err
	}
	readers := make([]io.Reader, len(pieces))
	for i, e := range pieces {
		readers[i] = io.NewSectionReader(s.f, e.at, e.n)
	}
	return &draftReader{r: io.MultiReader(readers...), want: d, hash: cas.NewHasher()}, nil
}

// Size implements cas.Store.
func (s *draft) Size(d cas.Digest) (int64, error) {
	pieces, err := s.pieces(d)
	var total int64
	for _, e := range pieces {
		total += e.n
	}
	return total, err
}

// All implements cas.Store.
func (s *draft) All() iter.Seq2[cas.Digest, error] {
	return func(yield func(cas.Digest, error) bool) {
		s.mu.Lock()
		all := slices.SortedFunc(maps.Keys(s.blobs), func(a, b cas.Digest) int { return slices.Compare(a[:], b[:]) })
		s.mu.Unlock()
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// A draftReader reads a blob and looks at its end whether it is the one.
type draftReader struct {
	r    io.Reader
	want cas.Digest
	hash *cas.Hasher
}

func (r *draftReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.hash.Write(p[:n])
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if got := r.hash.Sum(); got != r.want {
		return n, &cas.CorruptError{Digest: r.want, Got: got}
	}
	return n, io.EOF
}

// Close implements io.Closer.
func (r *draftReader) Close() error { return nil }

// inUse are the tapes that Transports of this process have open, by absolute path.
var inUse sync.Map

// use takes a tape for one Transport: two of one tape would each see half of what is asked, or write over each other.
func use(real, path string) error {
	if _, taken := inUse.LoadOrStore(real, true); taken {
		return fmt.Errorf("%w: %s is open in this process: give each test a tape of its own, or close the first", ErrInUse, path)
	}
	return nil
}

// A workshop is where a recording is made: its records in memory, its blobs in a file that has no name. Neither is there any
// more when the process is not.
type workshop struct {
	tape  bytes.Buffer
	store *draft
	rec   *tape.Recorder
}

func newWorkshop(rules int) (*workshop, error) {
	store, err := newDraft()
	if err != nil {
		return nil, err
	}
	w := &workshop{store: store}
	tw, err := tape.NewWriter(&w.tape, header(rules))
	if err != nil {
		return nil, errors.Join(err, w.remove())
	}
	w.rec = tape.NewRecorder(tw, &tape.RecorderOptions{Store: w.store})
	return w, nil
}

func (w *workshop) remove() error { return w.store.close() }

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
