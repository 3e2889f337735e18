package httptape_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

// TestHandler: a client with nothing but a base URL is recorded and answered, streams included.
func TestHandler(t *testing.T) {
	next := make(chan struct{}, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/base/v1/echo"):
			echo(w, r)
		case r.URL.Path == "/base/v1/stream":
			steps(3, next)(w, r)
		default:
			w.Header().Set("Trailer", "X-End")
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("X-End", "yes")
		}
	}))
	path := filepath.Join(t.TempDir(), "test")
	for range 2 {
		tr := open(t, path, nil)
		srv := httptest.NewServer(tr.Handler(upstream.URL + "/base/"))
		if got := post(t, http.DefaultClient, srv.URL+"/v1/echo%2Fx?q=1", "text/plain", "hi"); got != "POST /base/v1/echo%2Fx?q=1 hi" {
			t.Errorf("%v: %q", tr.Mode(), got)
		}
		res, err := http.Get(srv.URL + "/v1/stream")
		if err != nil {
			t.Fatal(err)
		}
		events := bufio.NewScanner(res.Body)
		for i := 0; i < 3; i++ {
			events.Scan()
			if want := fmt.Sprintf("data: %d", i); events.Text() != want {
				t.Errorf("%v: %q, want %q", tr.Mode(), events.Text(), want)
			}
			events.Scan()
			if tr.Recording() && i < 2 {
				next <- struct{}{} // the event is here before the next is sent
			}
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res, err = http.Get(srv.URL + "/other"); err != nil {
			t.Fatal(err)
		}
		if text(t, res); res.StatusCode != http.StatusTeapot || res.Trailer.Get("X-End") != "yes" {
			t.Errorf("%v: %s, trailers %v", tr.Mode(), res.Status, res.Trailer)
		}
		srv.Close()
		closed(t, tr)
		if tr.Recording() {
			upstream.Close()
		}
	}
}

// TestHandlerRefuses: who asks for what is not on the tape is told in its provider's words, and the test fails.
func TestHandlerRefuses(t *testing.T) {
	path, url := record(t, nil, say("x"), func(c *http.Client, url string) { get(t, c, url) })
	tr := open(t, path, &httptape.Options{AllowUnasked: true})
	srv := httptest.NewServer(tr.Handler(url))
	defer srv.Close()
	res, err := http.Post(srv.URL+"/v1/messages", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	body := text(t, res)
	if res.StatusCode != http.StatusBadRequest || res.Header.Get("X-Should-Retry") != "false" ||
		!strings.Contains(body, `"invalid_request_error"`) || !strings.Contains(body, "not on the tape") {
		t.Errorf("%s %s", res.Status, body)
	}
	if res, err = http.Get(srv.URL + "/plain"); err != nil {
		t.Fatal(err)
	}
	if body := text(t, res); !strings.Contains(body, `"not_on_tape"`) {
		t.Errorf("%s", body)
	}
	var diverged *httptape.DivergenceError
	if err := tr.Close(); !errors.As(err, &diverged) || len(diverged.Report.Unmatched) != 2 {
		t.Errorf("Close gives %v", err)
	}
}

// TestHandlerCuts: an answer that was cut is cut for the client of the handler too.
func TestHandlerCuts(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	path := filepath.Join(t.TempDir(), "test")
	for range 2 {
		tr := open(t, path, nil)
		srv := httptest.NewServer(tr.Handler(upstream.URL))
		res, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); string(b) != "half" || err == nil {
			t.Errorf("%v: %q, %v", tr.Mode(), b, err)
		}
		res.Body.Close()
		srv.Close()
		closed(t, tr)
		if tr.Recording() {
			upstream.Close()
		}
	}
}

func TestHandlerOfNoURL(t *testing.T) {
	tr := open(t, filepath.Join(t.TempDir(), "test"), nil)
	srv := httptest.NewServer(tr.Handler("api.example.com"))
	defer srv.Close()
	res, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	if text(t, res); res.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s", res.Status)
	}
}
