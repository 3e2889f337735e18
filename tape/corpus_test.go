package tape_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const corpus = "../corpus/tape"

// sentinels are the names that the corpus has for errors.
var sentinels = map[string]error{
	"empty": tape.ErrEmpty, "no-header": tape.ErrNoHeader, "second-header": tape.ErrSecondHeader, "torn": tape.ErrTorn,
	"not-json": tape.ErrNotJSON, "malformed": tape.ErrMalformed, "version": tape.ErrVersion,
}

func TestCorpus(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus, "*.tape"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tape"), func(t *testing.T) { checkCase(t, path) })
	}
}

func checkCase(t *testing.T, path string) {
	want := readWant(t, strings.TrimSuffix(path, ".tape")+".want")
	strict, err := load(path, &tape.ReaderOptions{})
	checkOutcome(t, path, "strict", err, want["strict"])
	strict.close()
	l, err := load(path, &tape.ReaderOptions{Tolerant: true})
	defer l.close()
	checkOutcome(t, path, "tolerant", err, want["tolerant"])
	if got := strconv.Itoa(len(l.records)); got != want["records"] {
		t.Errorf("%s records, want %s", got, want["records"])
	}
	if torn := l.tape != nil && l.tape.Torn(); torn != (want["torn"] == "yes") {
		t.Errorf("torn is %t", torn)
	}
	if want["saves"] != "" {
		checkSaves(t, path, l, want["saves"])
		checkBlobs(t, l, want["blobs"])
	}
}

// readWant reads what must come of a case.
func readWant(t *testing.T, path string) map[string]string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		key, value, _ := strings.Cut(line, ": ")
		want[key] = value
	}
	return want
}

type loaded struct {
	tape    *tape.Tape // nil where the header did not load
	records []*tape.Record
}

func (l *loaded) close() {
	if l.tape != nil {
		l.tape.Close()
	}
}

// load reads a tape as far as it goes.
func load(path string, o *tape.ReaderOptions) (*loaded, error) {
	f, err := tape.Open(path, o)
	if err != nil {
		return &loaded{}, err
	}
	l := &loaded{tape: f}
	for rec, err := range f.Records() {
		if err != nil {
			return l, err
		}
		l.records = append(l.records, rec)
	}
	return l, nil
}

func checkOutcome(t *testing.T, path, reader string, err error, want string) {
	t.Helper()
	got := "loads"
	if err != nil {
		got = err.Error()
	}
	var at *tape.LoadError
	if errors.As(err, &at) && at.Path == path {
		for name, sentinel := range sentinels {
			if errors.Is(err, sentinel) {
				got = fmt.Sprintf("%s line %d", name, at.Line)
			}
		}
	}
	if got != want {
		t.Errorf("%s reader: %s, want %s", reader, got, want)
	}
}

// checkSaves saves what was loaded, and loads it again.
func checkSaves(t *testing.T, path string, l *loaded, want string) {
	t.Helper()
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := save(t, l.tape.Header(), l.records)
	if same := bytes.Equal(in, out); same != (want == "same") {
		t.Errorf("saved\n%s\nloaded\n%s", out, in)
	}
	r, err := tape.NewReader(bytes.NewReader(out), "saved")
	if err != nil {
		t.Fatal(err)
	}
	var again []*tape.Record
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, rec)
	}
	if diff := cmp.Diff(l.records, again); diff != "" {
		t.Errorf("saved other records (-loaded +saved):\n%s", diff)
	}
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
func checkBlobs(t *testing.T, l *loaded, want string) {
	t.Helper()
	found := []string{}
	for _, rec := range l.records {
		for _, p := range tape.Payloads(rec.Kind) {
			_, err := p.Bytes(l.tape.Store)
			if streamed := drain(p, l.tape.Store); verdict(err) != verdict(streamed) {
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
