package tape_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/corpus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// sentinels are the names that the corpus has for errors.
var sentinels = map[string]error{
	"empty": tape.ErrEmpty, "no-header": tape.ErrNoHeader, "second-header": tape.ErrSecondHeader, "torn": tape.ErrTorn,
	"not-json": tape.ErrNotJSON, "malformed": tape.ErrMalformed, "version": tape.ErrVersion,
}

// corpusTapes returns the cases of the corpus.
func corpusTapes(t testing.TB) []corpus.Case {
	t.Helper()
	cases, err := corpus.Tapes()
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// corpusTape returns the tape of one case.
func corpusTape(t testing.TB, name string) []byte {
	t.Helper()
	cases := corpusTapes(t)
	i := slices.IndexFunc(cases, func(c corpus.Case) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the corpus has no %s", name)
	}
	return cases[i].Body
}

func TestCorpus(t *testing.T) {
	for _, c := range corpusTapes(t) {
		t.Run(c.Name, func(t *testing.T) { checkCase(t, &c) })
	}
}

func checkCase(t *testing.T, c *corpus.Case) {
	line, lineErr := c.Int("line")
	records, err := c.Int("records")
	if err := errors.Join(lineErr, err); err != nil {
		t.Fatal(err)
	}
	want := outcome{code: c.Get("expect"), line: line}
	l := loadBytes(c.Body, &tape.ReaderOptions{})
	checkOutcome(t, "strict", l, want, records)
	torn := want.code == "torn"
	if torn {
		want = outcome{code: c.Get("tolerant")}
	}
	l = loadBytes(c.Body, &tape.ReaderOptions{Tolerant: true})
	checkOutcome(t, "tolerant", l, want, records)
	if l.reader != nil && l.reader.Torn() != torn {
		t.Errorf("torn is %t", l.reader.Torn())
	}
	if want.code == "loads" {
		checkSaves(t, l, c.Get("canonical"))
		checkOrder(t, l, c.Get("order"))
		checkBlobs(t, l.records, corpusStore(t, c), c.Get("blobs"))
	}
}

// An outcome is the corpus's word for what a reader said.
type outcome struct {
	code string
	line int
}

// loaded is what a reader gave.
type loaded struct {
	reader  *tape.Reader // nil where the header did not load
	records []*tape.Record
	err     error
}

const loadedName = "a tape"

// loadBytes reads a tape as far as it goes.
func loadBytes(b []byte, o *tape.ReaderOptions) loaded {
	r, err := tape.NewReaderOptions(bytes.NewReader(b), loadedName, o)
	if err != nil {
		return loaded{err: err}
	}
	l := loaded{reader: r}
	for rec, err := range r.Records() {
		if err != nil {
			l.err = err
			break
		}
		l.records = append(l.records, rec)
	}
	return l
}

func checkOutcome(t *testing.T, reader string, l loaded, want outcome, records int) {
	t.Helper()
	got := outcome{code: "loads"}
	if l.err != nil {
		got.code = l.err.Error()
	}
	var at *tape.LoadError
	if errors.As(l.err, &at) && at.Path == loadedName {
		for name, sentinel := range sentinels {
			if errors.Is(l.err, sentinel) {
				got = outcome{name, at.Line}
			}
		}
	}
	if got != want {
		t.Errorf("%s reader: %v, want %v", reader, got, want)
	}
	if len(l.records) != records {
		t.Errorf("%s reader: %d records, want %d", reader, len(l.records), records)
	}
}

// checkSaves saves what was loaded, and loads it again.
func checkSaves(t *testing.T, l loaded, want string) {
	t.Helper()
	out := save(t, l.reader.Header(), l.records)
	if got := fmt.Sprintf("%x", sha256.Sum256(out)); got != want {
		t.Errorf("canonical form is %s, want %s:\n%s", got, want, out)
	}
	again := loadBytes(out, nil)
	if again.err != nil {
		t.Fatal(again.err)
	}
	if diff := cmp.Diff(l.records, again.records); diff != "" {
		t.Errorf("saved other records (-loaded +saved):\n%s", diff)
	}
}

func checkOrder(t *testing.T, l loaded, want string) {
	t.Helper()
	got := ""
	for i, rec := range l.records {
		if rec.Seq != uint64(i) {
			got = "disordered"
		}
	}
	if got != want {
		t.Errorf("order is %q, want %q", got, want)
	}
}

// corpusStore returns the store of a case. What stands in it under another name than its digest is damage, and under a
// name that is none is not there.
func corpusStore(t *testing.T, c *corpus.Case) cas.Store {
	t.Helper()
	blobs, err := c.Blobs()
	if err != nil {
		t.Fatal(err)
	}
	s := &caseStore{Memory: cas.NewMemory(), damaged: map[cas.Digest]cas.Digest{}}
	for name, b := range blobs {
		d, err := cas.Parse(name)
		if err != nil {
			continue
		}
		got, err := s.Put(b)
		if err != nil {
			t.Fatal(err)
		}
		if d != got {
			s.damaged[d] = got
		}
	}
	return s
}

// caseStore is a store with damage in it.
type caseStore struct {
	*cas.Memory
	damaged map[cas.Digest]cas.Digest // what the bytes hash to
}

func (s *caseStore) Get(d cas.Digest) ([]byte, error) {
	if got, ok := s.damaged[d]; ok {
		return nil, &cas.CorruptError{Digest: d, Got: got}
	}
	return s.Memory.Get(d)
}

func (s *caseStore) Open(d cas.Digest) (io.ReadCloser, error) {
	if _, err := s.Get(d); err != nil {
		return nil, err
	}
	return s.Memory.Open(d)
}

// save writes a whole tape.
func save(t testing.TB, h *tape.Header, records []*tape.Record) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := tape.NewWriter(&buf, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := w.Append(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// checkBlobs resolves every payload in both ways.
func checkBlobs(t *testing.T, records []*tape.Record, s cas.Store, want string) {
	t.Helper()
	found := []string{}
	for _, rec := range records {
		for _, p := range tape.Payloads(rec.Kind) {
			_, err := p.Bytes(s)
			if streamed := drain(p, s); verdict(err) != verdict(streamed) {
				t.Errorf("Bytes: %v, Open: %v", err, streamed)
			}
			if v := verdict(err); v != "whole" && !slices.Contains(found, v) {
				found = append(found, v)
			}
		}
	}
	if got := strings.Join(found, ", "); got != strings.TrimPrefix(want, "whole") {
		t.Errorf("blobs: %q, want %q", got, want)
	}
}

// drain reads a payload as a stream.
func drain(p *tape.Payload, s cas.Store) error {
	r, err := p.Open(s)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = bytes.NewBuffer(nil).ReadFrom(r)
	return err
}

// verdict is the corpus's word for what resolving a payload gave.
func verdict(err error) string {
	var missing *cas.MissingError
	var corrupt *cas.CorruptError
	switch {
	case err == nil:
		return "whole"
	case errors.As(err, &missing):
		return "missing " + missing.Digest.String()
	case errors.As(err, &corrupt):
		return "damaged " + corrupt.Digest.String()
	}
	return err.Error()
}
