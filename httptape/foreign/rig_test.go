package foreign

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A rig is one import.
type rig struct {
	t      *testing.T
	dir    string
	out    string
	report *Report
}

// imported imports a text, whose format is found out.
func imported(t *testing.T, text string) *rig {
	t.Helper()
	return importedFile(t, written(t, text))
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cassette")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func importedFile(t *testing.T, path string) *rig {
	t.Helper()
	im, err := Detect(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: t.TempDir()}
	r.out = filepath.Join(r.dir, "x.tape")
	if r.report, err = im.Import(t.Context(), path, r.out, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// refused is the error of importing a text by a name.
func refused(t *testing.T, name, text string) error {
	t.Helper()
	im, ok := ByName(name)
	if !ok {
		t.Fatalf("no importer %s", name)
	}
	dir := t.TempDir()
	_, err := im.Import(t.Context(), written(t, text), filepath.Join(dir, "x.tape"), nil)
	if err == nil {
		t.Error("no error")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("a refused import left %v", left)
	}
	return err
}

// records are those of the tape.
func (r *rig) records() (all []*tape.Record) {
	r.t.Helper()
	f, err := tape.Open(r.out, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	for rec, err := range f.Records() {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

// exchange is that of the i-th record.
func (r *rig) exchange(i int) *tape.Exchange {
	r.t.Helper()
	all := r.records()
	if i >= len(all) {
		r.t.Fatalf("the tape has %d records; %+v", len(all), r.report)
	}
	return tape.ExchangeOf(all[i].Kind)
}

// body is a payload of the tape.
func (r *rig) body(p *tape.Payload) string {
	r.t.Helper()
	if p == nil {
		return ""
	}
	store, err := cas.OpenDir(r.out+tape.StoreSuffix, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := p.Bytes(store)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// all is everything that the import wrote.
func (r *rig) all() string {
	r.t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, errRead := os.ReadFile(path)
			all.Write(b)
			return errRead
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all.String()
}

// hides checks that no text stands anywhere on the tape.
func (r *rig) hides(texts ...string) {
	r.t.Helper()
	all := r.all()
	for _, s := range texts {
		if strings.Contains(all, s) {
			r.t.Errorf("%q stands on the tape:\n%s", s, all)
		}
	}
}

// open opens the tape to answer.
func (r *rig) open() *httptape.Transport {
	r.t.Helper()
	tr, err := httptape.Open(r.out, &httptape.Options{Mode: httptape.ModeReplayOnly})
	if err != nil {
		r.t.Fatal(err)
	}
	return tr
}

// closed checks that everything was asked for.
func (r *rig) closed(tr *httptape.Transport) {
	r.t.Helper()
	if err := tr.Close(); err != nil {
		r.t.Error(err)
	}
}

// ask sends a request to the tape.
func (r *rig) ask(tr *httptape.Transport, method, url, body string, header ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Error(err)
	}
	return res, string(b)
}

// noted checks that a note says something.
func (r *rig) noted(part string) {
	r.t.Helper()
	if !strings.Contains(strings.Join(r.report.Notes, "\n"), part) {
		r.t.Errorf("no note says %q: %q", part, r.report.Notes)
	}
}

// skipped checks what was skipped.
func (r *rig) skipped(why string, count int, first string) {
	r.t.Helper()
	for _, s := range r.report.Skipped {
		if strings.Contains(s.Why, why) {
			if s.Count != count || s.First != first {
				r.t.Errorf("skipped %+v, want %d from %s", s, count, first)
			}
			return
		}
	}
	r.t.Errorf("nothing was skipped for %q: %+v", why, r.report.Skipped)
}

func asReadError(t *testing.T, err error) *ReadError {
	t.Helper()
	var e *ReadError
	if !errors.As(err, &e) {
		t.Fatalf("%v is no ReadError", err)
	}
	return e
}
