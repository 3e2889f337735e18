package httptape_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestMain runs the tests in an environment that decides nothing, and is the recorder that TestKilled kills.
func TestMain(m *testing.M) {
	os.Unsetenv("CI")
	os.Unsetenv(httptape.RecordVariable)
	if path := os.Getenv("HTTPTAPE_TEST_RECORD"); path != "" {
		recordForEver(path)
	}
	os.Exit(m.Run())
}

// fakeTB is a test that may fail.
type fakeTB struct {
	name            string
	failed, skipped bool
	errors, logs    []string
	cleanups        []func()
}

func (f *fakeTB) Helper()                 {}
func (f *fakeTB) Name() string            { return f.name }
func (f *fakeTB) Failed() bool            { return f.failed }
func (f *fakeTB) Skipped() bool           { return f.skipped }
func (f *fakeTB) Cleanup(fn func())       { f.cleanups = append(f.cleanups, fn) }
func (f *fakeTB) Logf(s string, a ...any) { f.logs = append(f.logs, fmt.Sprintf(s, a...)) }
func (f *fakeTB) Errorf(s string, a ...any) {
	f.failed = true
	f.errors = append(f.errors, fmt.Sprintf(s, a...))
}
func (f *fakeTB) Fatalf(s string, a ...any) { f.Errorf(s, a...) }

// end runs the cleanups, as the end of a test does.
func (f *fakeTB) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	f.cleanups = nil
}

// open opens a tape that the test closes itself.
func open(t testing.TB, path string, o *httptape.Options) *httptape.Transport {
	t.Helper()
	tr, err := httptape.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// closed closes a Transport with which nothing may be wrong.
func closed(t testing.TB, tr *httptape.Transport) {
	t.Helper()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
}

// record makes a tape of what use asks of handler, and returns its path and the server's URL; the server is gone.
func record(t *testing.T, o *httptape.Options, handler http.HandlerFunc, use func(c *http.Client, url string)) (path, url string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "test")
	return path, recordAt(t, path, o, handler, use)
}

func recordAt(t *testing.T, path string, o *httptape.Options, handler http.HandlerFunc, use func(c *http.Client, url string)) string {
	t.Helper()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	tr := open(t, path, o)
	use(tr.Client(), srv.URL)
	closed(t, tr)
	return srv.URL
}

// replayed asks the tape the same, which must answer all.
func replayed(t *testing.T, path, url string, o *httptape.Options, use func(c *http.Client, url string)) {
	t.Helper()
	tr := open(t, path, o)
	if tr.Mode() != httptape.ModeReplayOnly {
		t.Fatalf("the second run does %v", tr.Mode())
	}
	use(tr.Client(), url)
	closed(t, tr)
}

// both records and replays.
func both(t *testing.T, o *httptape.Options, handler http.HandlerFunc, use func(c *http.Client, url string)) (path string) {
	t.Helper()
	path, url := record(t, o, handler, use)
	replayed(t, path, url, o, use)
	return path
}

// get asks for a URL and returns the body.
func get(t testing.TB, c *http.Client, url string) string {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return text(t, res)
}

func post(t testing.TB, c *http.Client, url, contentType, body string) string {
	t.Helper()
	res, err := c.Post(url, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return text(t, res)
}

func text(t testing.TB, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func request(t testing.TB, ctx context.Context, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// lines returns the records of a tape, and checks that it loads with its blobs.
func lines(t testing.TB, path string) []string {
	t.Helper()
	f, err := tape.Open(path+".tape", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq != uint64(len(out)) {
			t.Errorf("seq %d stands at %d", r.Seq, len(out))
		}
		for _, p := range tape.Payloads(r.Kind) {
			if p == nil {
				continue
			}
			if _, err := p.Bytes(f.Store); err != nil {
				t.Error(err)
			}
		}
		out = append(out, string(tape.AppendRecord(nil, r)))
	}
	return out
}

// onDisk returns every byte below a directory.
func onDisk(t testing.TB, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

// rewrite changes the exchanges of a tape, as a hand would.
func rewrite(t testing.TB, path string, change func(*tape.Exchange)) {
	t.Helper()
	f, err := tape.Open(path+".tape", nil)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w, err := tape.NewWriter(&buf, f.Header())
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		change(tape.ExchangeOf(r.Kind))
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.WriteFile(path+".tape", buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
