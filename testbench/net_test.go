package testbench_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// echo answers everything with what it was asked, and a long tail, which is no inline payload.
func echo(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	text := fmt.Sprintf("%s %s %s %s", req.Method, req.URL, req.Header.Get("Authorization"), body)
	if req.URL.Path == "/long" {
		text += strings.Repeat(" and so on", 1000)
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1,
	}, nil
}

// tapeOf runs body on a bench and returns the bytes of its tape and of all that stands beside it.
func tapeOf(t *testing.T, c testbench.Config, body func(b *testbench.Bench)) (path, all string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.tape")
	c.Emit, c.Name = path, "agent"
	b, err := testbench.Open(&c)
	if err != nil {
		t.Fatal(err)
	}
	body(b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return path, filesBelow(t, filepath.Dir(path))
}

func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(&out, "== %s\n%s", strings.TrimPrefix(path, dir), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func send(t *testing.T, b *testbench.Bench, ctx context.Context, method, url, key, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := b.Client().Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(got)
}

// TestNetSecrets has runs with different keys write the same bytes, with no key among them, also in what the server says of it.
func TestNetSecrets(t *testing.T) {
	run := func(key string) (path, all string) {
		return tapeOf(t, testbench.Config{Net: testbench.Net{Transport: roundTrip(echo)}}, func(b *testbench.Bench) {
			for _, path := range []string{"/a", "/long", "/a"} {
				if got := send(t, b, t.Context(), http.MethodPost, "https://h.example"+path, key, `{"token":"`+key+`"}`); !strings.Contains(got, key) {
					t.Errorf("the program got %.100s", got)
				}
			}
		})
	}
	const key, other = "open-sesame-0123456789", "another-sesame-98765432"
	path, first := run(key)
	if strings.Contains(first, key) {
		t.Errorf("the key stands on the tape:\n%s", first)
	}
	if _, again := run(key); first != again {
		t.Error(cmp.Diff(first, again))
	}
	if _, again := run(other); again != first {
		t.Error(cmp.Diff(first, again))
	}
	b := testbench.NewReplay(t, path, nil)
	for _, path := range []string{"/a", "/long", "/a"} {
		send(t, b, t.Context(), http.MethodPost, "https://h.example"+path, other, `{"token":"`+other+`"}`)
	}
	if r, err := b.Verdict(fidelity.ByteIdentical); err != nil || len(r.Divergences) > 0 {
		t.Errorf("%+v, %v", r.Divergences, err)
	}
}

// TestNetTape answers from a tape that another run emitted, and complains of what nobody asked for.
func TestNetTape(t *testing.T) {
	path, _ := tapeOf(t, testbench.Config{Net: testbench.Net{Transport: roundTrip(echo)}}, func(b *testbench.Bench) {
		send(t, b, t.Context(), "GET", "https://h.example/a", "", "")
		send(t, b, t.Context(), "GET", "https://h.example/b", "", "")
	})
	f := newFakeT(t)
	f.run(func() {
		b := testbench.New(f, &testbench.Config{Net: testbench.Net{Tape: path}})
		if got := send(t, b, t.Context(), "GET", "https://h.example/b", "", ""); got != "GET https://h.example/b  " {
			t.Errorf("got %q", got)
		}
	})
	if said := f.end(); !strings.Contains(said, "GET https://h.example/a") || !strings.Contains(said, "never asked for") {
		t.Errorf("the test said %q", said)
	}
}

// TestNetForeignSecrets answers from a tape whose placeholders are not numbers, as a recording's are: the run's own say one thing
// throughout, so its replay writes the same bytes.
func TestNetForeignSecrets(t *testing.T) {
	from := filepath.Join(t.TempDir(), "run.tape")
	f, err := os.Create(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := tape.NewWriter(f, &tape.Header{Producer: "tapedeck test"})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := roundtrip.New(&roundtrip.Options{Next: roundTrip(echo), Classifier: llm.NewClassifier(nil)})
	if err != nil {
		t.Fatal(err)
	}
	tr.Record(tape.NewRecorder(w, nil))
	ask := func(rt http.RoundTripper, key string) {
		for range 3 {
			req, _ := http.NewRequest("POST", "https://h.example/?token="+key, strings.NewReader(`{"token":"`+key+`"}`))
			req.Header.Set("Authorization", "Bearer "+key)
			res, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	ask(tr, "key-of-who-recorded-1234")
	path, all := tapeOf(t, testbench.Config{Net: testbench.Net{Tape: from}}, func(b *testbench.Bench) { ask(b.HTTP(), "key-of-who-replays-5678") })
	if n := strings.Count(all, "Bearer td_authorization_000000000001"); n != 3 {
		t.Errorf("%d requests name the first secret:\n%s", n, all)
	}
	b := testbench.NewReplay(t, path, nil)
	ask(b.HTTP(), "key-of-a-third-90123456")
	if r, err := b.Verdict(fidelity.ByteIdentical); err != nil || len(r.Divergences) > 0 {
		t.Errorf("%+v, %v", r.Divergences, err)
	}
}

// TestNetParallel has branches that wait and ask, over HTTP and of a model in its wire format, write the same tape in every run.
func TestNetParallel(t *testing.T) {
	const branches = 64
	from, _ := tapeOf(t, testbench.Config{Net: testbench.Net{Transport: roundTrip(echo)}}, func(b *testbench.Bench) {
		for i := range branches {
			send(t, b, t.Context(), "GET", fmt.Sprintf("https://h.example/%d", i), "", "")
		}
	})
	run := func() string {
		c := testbench.Config{
			Net: testbench.Net{Tape: from},
			LLM: testbench.LLM{Rules: []fixture.Rule{{Match: fixture.Match{Any: true}, Times: branches, Stream: []fixture.Piece{{Text: "a", DelayMS: 3}, {Text: "b", DelayMS: 4}}}}},
		}
		_, all := tapeOf(t, c, func(b *testbench.Bench) {
			var fs []func(ctx context.Context) error
			for i := range branches {
				fs = append(fs, func(ctx context.Context) error {
					if err := b.Clock().Sleep(ctx, time.Duration(i*7%13)*time.Millisecond); err != nil {
						return err
					}
					send(t, b, ctx, "GET", fmt.Sprintf("https://h.example/%d", i), "", "")
					send(t, b, ctx, "POST", "https://api.anthropic.com/v1/messages", "k", fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"%d"}]}`, i))
					return nil
				})
			}
			if err := b.Parallel(t.Context(), fs...); err != nil {
				t.Error(err)
			}
		})
		return all
	}
	first := run()
	if n := strings.Count(first, `"kind":"llm_call"`); n != branches {
		t.Errorf("%d calls", n)
	}
	for range 20 {
		if again := run(); !bytes.Equal([]byte(first), []byte(again)) {
			t.Fatal(cmp.Diff(first, again))
		}
	}
}
