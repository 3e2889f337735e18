package cassettes

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	recorder1 "github.com/dnaeon/go-vcr/recorder"
	recorder3 "gopkg.in/dnaeon/go-vcr.v3/recorder"
	recorder4 "gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"

	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/httptape/foreign"
)

// A question is one request.
type question struct{ method, path, body, kind string }

// bodies are what cassettes are bad at. (Of a text that begins with a line break go-vcr 3 itself loses
// it: gopkg.in/yaml.v3. The importer notes that the length is another.)
var bodies = []string{
	"", "plain", "two\nlines\n", "breaks\n\n\n", "  indented\n    more\n", "trailing space \n", "tab\t\n", "CRLF\r\nmore\r\n",
	"a: b # c", "- x", "'single' \"double\" \\", "\u2028line\u2029s\u0085", "😀 é\u00a0\ufeff", "true", "~", "123", "\x00\x01\x02", "\xff\xfe bytes",
	strings.Repeat("a long line that is folded where a writer folds, with \"quotes\" and more: ", 30), `{"json": "with \\ and \n and é", "n": 1.50}`,
	"data: {\"choices\":[]}\n\ndata: [DONE]\n\n", "---\n", "...\n", "key: |\n  literal\n",
}

func questions() (all []question) {
	for i := range bodies {
		all = append(all, question{"GET", fmt.Sprintf("/body/%d", i), "", ""})
	}
	for i, b := range bodies {
		all = append(all, question{"POST", fmt.Sprintf("/echo/%d", i), b, "text/plain"})
	}
	return append(all,
		question{"GET", "/gzip", "", ""}, question{"GET", "/empty", "", ""}, question{"GET", "/fail?x=1&x=2", "", ""}, question{"HEAD", "/body/1", "", ""},
		question{"GET", "/headers", "", ""}, question{"GET", "/count", "", ""}, question{"GET", "/count", "", ""}, question{"DELETE", "/gone", "", ""},
		question{"POST", "/echo/form", "a=1&b=%20&" + strings.Repeat("k", 200) + "=long", "application/x-www-form-urlencoded"},
		question{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "application/json"},
	)
}

// server answers questions.
func server(t *testing.T) *httptest.Server {
	count := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		switch {
		case strings.HasPrefix(r.URL.Path, "/body/"):
			fmt.Sscanf(r.URL.Path, "/body/%d", &i)
			io.WriteString(w, bodies[i])
		case strings.HasPrefix(r.URL.Path, "/echo/"):
			w.Header().Set("Content-Type", "application/octet-stream")
			io.Copy(w, r.Body)
		case r.URL.Path == "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, strings.Repeat("packed ", 100))
			z.Close()
		case r.URL.Path == "/empty":
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path == "/headers":
			w.Header()["X-Several"] = []string{"a", "b: c", "'", "é"}
			w.Header().Set("Set-Cookie", "session=Zq8kP2mV5xW1; Path=/")
			w.Header().Set("X-Long", strings.Repeat("word ", 60)+"end")
		case r.URL.Path == "/count":
			count++
			fmt.Fprint(w, count)
		case r.URL.Path == "/v1/chat/completions":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
		default:
			http.Error(w, "no", http.StatusTeapot)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// An answer is what came.
type answer struct {
	status int
	body   string
	header http.Header
}

// ask asks all questions.
func ask(t *testing.T, rt http.RoundTripper, base string) (all []answer) {
	t.Helper()
	for _, q := range questions() {
		req, err := http.NewRequest(q.method, base+q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		if q.kind != "" {
			req.Header.Set("Content-Type", q.kind)
		}
		req.Header.Set("Authorization", "Bearer sk-verysecretverysecret123")
		res, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s %s: %v", q.method, q.path, err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatalf("%s %s: %v", q.method, q.path, err)
		}
		h := res.Header.Clone()
		for _, name := range []string{"Date", "Content-Length", "Set-Cookie"} { // Date is the day's; a cookie is a placeholder
			h.Del(name)
		}
		all = append(all, answer{res.StatusCode, string(b), h})
	}
	return all
}

// goVCRs are the versions of go-vcr: each returns a RoundTripper that records a cassette or plays it, and what ends it.
var goVCRs = map[string]func(path string, record bool) (http.RoundTripper, func() error, error){
	"go-vcr 1": func(path string, record bool) (http.RoundTripper, func() error, error) {
		mode := recorder1.ModeReplaying
		if record {
			mode = recorder1.ModeRecording
		}
		r, err := recorder1.NewAsMode(path, mode, http.DefaultTransport)
		if err != nil {
			return nil, nil, err
		}
		return r, r.Stop, nil
	},
	"go-vcr 3": func(path string, record bool) (http.RoundTripper, func() error, error) {
		o := &recorder3.Options{CassetteName: path, Mode: recorder3.ModeReplayOnly, SkipRequestLatency: true}
		if record {
			o.Mode = recorder3.ModeRecordOnly
		}
		r, err := recorder3.NewWithOptions(o)
		if err != nil {
			return nil, nil, err
		}
		return r, r.Stop, nil
	},
	"go-vcr 4": func(path string, record bool) (http.RoundTripper, func() error, error) {
		mode := recorder4.ModeReplayOnly
		if record {
			mode = recorder4.ModeRecordOnly
		}
		r, err := recorder4.New(path, recorder4.WithMode(mode), recorder4.WithSkipRequestLatency(true))
		if err != nil {
			return nil, nil, err
		}
		return r, r.Stop, nil
	},
}

func TestGoVCR(t *testing.T) {
	for name, open := range goVCRs {
		t.Run(name, func(t *testing.T) {
			dir, srv := t.TempDir(), server(t)
			cassette := filepath.Join(dir, "cassette")
			rt, stop, err := open(cassette, true)
			if err != nil {
				t.Fatal(err)
			}
			real := ask(t, rt, srv.URL)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			srv.Close()
			theirs, stop, err := open(cassette, false)
			if err != nil {
				t.Fatal(err)
			}
			played := ask(t, theirs, srv.URL)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			check(t, ofTape(t, cassette+".yaml", srv.URL), real, played)
		})
	}
}

// ofTape imports a cassette and asks its tape.
func ofTape(t *testing.T, cassette, base string) []answer {
	t.Helper()
	im, err := foreign.Detect(cassette)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "x.tape")
	report, err := im.Import(t.Context(), cassette, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if im.Name() != "go-vcr" || report.Exchanges != len(questions()) || report.LLMCalls != 1 || len(report.Skipped) > 0 {
		t.Errorf("%+v", report)
	}
	tr, err := httptape.Open(out, &httptape.Options{Mode: httptape.ModeReplayOnly})
	if err != nil {
		t.Fatal(err)
	}
	got := ask(t, tr, base)
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	return got
}

func check(t *testing.T, got, real, played []answer) {
	t.Helper()
	for i, q := range questions() {
		if got[i].status != real[i].status || got[i].body != real[i].body {
			t.Errorf("%s %s: %d %q, the server gave %d %q, go-vcr plays %q", q.method, q.path, got[i].status, got[i].body, real[i].status, real[i].body, played[i].body)
		}
		if !reflect.DeepEqual(got[i].header, played[i].header) {
			t.Errorf("%s %s: header\n%v\ngo-vcr plays\n%v", q.method, q.path, got[i].header, played[i].header)
		}
	}
}
