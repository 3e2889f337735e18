package httptape_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, b)
}

func TestRecordThenAnswer(t *testing.T) {
	path := both(t, nil, echo, func(c *http.Client, url string) {
		if got := get(t, c, url+"/a?b=c"); got != "GET /a?b=c " {
			t.Errorf("got %q", got)
		}
		if got := post(t, c, url+"/json", "application/json", `{"b":1,"a":2}`); got != `POST /json {"b":1,"a":2}` {
			t.Errorf("got %q", got)
		}
	})
	if got := lines(t, path); len(got) != 2 {
		t.Errorf("the tape has %d records", len(got))
	}
}

func TestAnswersStandAsTheyCame(t *testing.T) {
	blob := make([]byte, 6<<20)
	rand.Read(blob)
	for name, c := range map[string]struct {
		method string
		serve  http.HandlerFunc
	}{
		"head":       {"HEAD", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "12345") }},
		"no content": {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		"not modified": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"x"`)
			w.WriteHeader(304)
		}},
		"redirect":    {"GET", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) }},
		"failure":     {"POST", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }},
		"empty":       {"GET", func(http.ResponseWriter, *http.Request) {}},
		"many values": {"GET", func(w http.ResponseWriter, _ *http.Request) { w.Header()["Vary"] = []string{"a", "b"} }},
		"not UTF-8": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Latin", "caf\xe9")
			w.Write([]byte{0xff, 0})
		}},
		"large":       {"GET", func(w http.ResponseWriter, _ *http.Request) { w.Write(blob) }},
		"status only": {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) }},
		"zipped by the server": {"GET", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				panic("net/http offers gzip")
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, "plain")
			z.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			both(t, nil, c.serve, func(client *http.Client, url string) {
				res, err := client.Transport.RoundTrip(request(t, t.Context(), c.method, url+"/x", nil))
				if err != nil {
					t.Fatal(err)
				}
				if res.Request == nil || res.Request.URL.Path != "/x" {
					t.Error("the answer does not know its request")
				}
				body := text(t, res)
				h := maps.Clone(res.Header)
				h.Del("Date")
				length := res.ContentLength
				seen = append(seen, fmt.Sprintf("%s %s %v %d %d %q", res.Status, res.Proto, h, length, len(body), body))
			})
			if seen[0] != seen[1] {
				t.Errorf("recorded %.300s\nreplayed %.300s", seen[0], seen[1])
			}
		})
	}
}

func TestRequestsArriveWhole(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %v %s", r.ContentLength, r.TransferEncoding, b)
	}
	both(t, nil, serve, func(c *http.Client, url string) {
		// of unknown length
		res, err := c.Do(request(t, t.Context(), "PUT", url, io.MultiReader(strings.NewReader("a"), strings.NewReader("b"))))
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); got != "-1 [chunked] ab" {
			t.Errorf("unknown length: %q", got)
		}
		// with Expect
		req := request(t, t.Context(), "POST", url, strings.NewReader("expected"))
		req.Header.Set("Expect", "100-continue")
		if res, err = c.Do(req); err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); got != "8 [] expected" {
			t.Errorf("expect: %q", got)
		}
		// the caller's own request is left alone
		if req.Header.Get("Expect") == "" || req.Host == "" && req.URL.Host == "" {
			t.Error("the request was changed")
		}
	})
}

// TestRedirect: the client follows, with the body of a 307, and each step is an exchange of its own.
func TestRedirect(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusTemporaryRedirect)
			return
		}
		echo(w, r)
	}
	path := both(t, nil, serve, func(c *http.Client, url string) {
		if got := post(t, c, url+"/from", "text/plain", "kept"); got != "POST /to kept" {
			t.Errorf("got %q", got)
		}
	})
	if got := lines(t, path); len(got) != 2 {
		t.Errorf("%d records", len(got))
	}
}

// TestEncodedByTheCaller: a caller that asks for gzip itself gets what came.
func TestEncodedByTheCaller(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "plain")
		z.Close()
	}
	both(t, nil, serve, func(c *http.Client, url string) {
		req := request(t, t.Context(), "GET", url, nil)
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(strings.NewReader(text(t, res)))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(z); string(b) != "plain" {
			t.Errorf("got %q", b)
		}
	})
}

func TestTrailers(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum, X-Token")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "42")
		w.Header().Set("X-Token", "a-secret-of-the-trailer")
	}
	path := both(t, nil, serve, func(c *http.Client, url string) {
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, announced := res.Trailer["X-Sum"]; !announced || res.Trailer.Get("X-Sum") != "" {
			t.Errorf("before the end: %v", res.Trailer)
		}
		text(t, res)
		if res.Trailer.Get("X-Sum") != "42" {
			t.Errorf("trailers: %v", res.Trailer)
		}
	})
	if bytes.Contains(onDisk(t, filepath.Dir(path)), []byte("a-secret-of-the-trailer")) {
		t.Error("the secret of a trailer is on the tape")
	}
}

// TestHTTP2 records over TLS and HTTP/2, and says so on replay.
func TestHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	base := srv.Client().Transport.(*http.Transport).Clone()
	base.ForceAttemptHTTP2 = true
	path := filepath.Join(t.TempDir(), "h2")
	for range 2 {
		tr := open(t, path, &httptape.Options{Base: base})
		res, err := tr.Client().Post(srv.URL+"/h2", "text/plain", strings.NewReader("two"))
		if err != nil {
			t.Fatal(err)
		}
		if res.ProtoMajor != 2 || res.Proto != "HTTP/2.0" {
			t.Errorf("%v: %s", tr.Mode(), res.Proto)
		}
		if got := text(t, res); got != "POST /h2 two" {
			t.Errorf("%v: %q", tr.Mode(), got)
		}
		closed(t, tr)
		base.TLSClientConfig = &tls.Config{} // trusts the server no more: nobody asks it
	}
}

// TestRepeats: equal requests get their answers in recorded order, a retry too.
func TestRepeats(t *testing.T) {
	var n int
	serve := func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, n)
	}
	path, url := record(t, nil, serve, func(c *http.Client, url string) {
		for range 3 {
			get(t, c, url)
		}
	})
	replayed(t, path, url, nil, func(c *http.Client, url string) {
		for want := 1; want <= 3; want++ {
			if got := get(t, c, url); got != fmt.Sprint(want) {
				t.Errorf("answer %d is %q", want, got)
			}
		}
	})
	tr := open(t, path, &httptape.Options{Repeat: true})
	for range 5 {
		get(t, tr.Client(), url)
	}
	if got := get(t, tr.Client(), url); got != "3" {
		t.Errorf("repeated: %q", got)
	}
	closed(t, tr)
}

// TestConcurrent: every caller gets the answer to its own question, both times.
func TestConcurrent(t *testing.T) {
	both(t, nil, echo, func(c *http.Client, url string) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				body := fmt.Sprintf(`{"n":%d}`, i)
				res, err := c.Post(url, "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if got, _ := io.ReadAll(res.Body); string(got) != "POST / "+body {
					t.Errorf("crossed: asked %s, got %s", body, got)
				}
			})
		}
		wg.Wait()
	})
}

// TestHeadersThatMatter: the same URL under two values of Accept.
func TestHeadersThatMatter(t *testing.T) {
	o := &httptape.Options{Headers: []string{"accept"}}
	serve := func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Accept")) }
	ask := func(c *http.Client, url, accept string) (string, error) {
		req := request(t, t.Context(), "GET", url, nil)
		req.Header.Set("Accept", accept)
		res, err := c.Do(req)
		if err != nil {
			return "", err
		}
		return text(t, res), nil
	}
	path, url := record(t, o, serve, func(c *http.Client, url string) {
		ask(c, url, "text/plain")
		ask(c, url, "text/html")
	})
	tr := open(t, path, o)
	for _, accept := range []string{"text/html", "text/plain"} { // not in recorded order
		if got, err := ask(tr.Client(), url, accept); got != accept || err != nil {
			t.Errorf("asked for %s: %q, %v", accept, got, err)
		}
	}
	closed(t, tr)
	tr = open(t, path, o)
	_, err := ask(tr.Client(), url, "image/png")
	e := unmatched(t, err)
	if !strings.Contains(e.Why, "headers.Accept") {
		t.Errorf("why: %s", e.Why)
	}
}

func TestRewrite(t *testing.T) {
	o := &httptape.Options{Rewrite: func(r *exchangeRequest) {
		r.URL, _, _ = strings.Cut(r.URL, "?nonce=")
		r.Body = bytes.ReplaceAll(r.Body, []byte("noise"), nil)
	}}
	var sent []string
	serve := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent = append(sent, r.URL.RawQuery+string(b))
	}
	path, url := record(t, o, serve, func(c *http.Client, url string) { post(t, c, url+"?nonce=1", "text/plain", "noise") })
	if sent[0] != "nonce=1noise" {
		t.Errorf("sent %q", sent[0])
	}
	replayed(t, path, url, o, func(c *http.Client, url string) { post(t, c, url+"?nonce=2", "text/plain", "") })
}

func TestPassthroughOfOneRequest(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(echo))
	defer srv.Close()
	path := filepath.Join(t.TempDir(), "test")
	o := &httptape.Options{Passthrough: func(r *http.Request) bool { return r.URL.Path == "/login" }}
	for range 2 {
		tr := open(t, path, o)
		get(t, tr.Client(), srv.URL+"/login")
		get(t, tr.Client(), srv.URL+"/data")
		closed(t, tr)
	}
	if got := lines(t, path); len(got) != 1 {
		t.Errorf("%d records", len(got))
	}
}

// TestBodyOfRequestIsBounded: what is longer than MaxBody is not sent.
func TestBodyOfRequestIsBounded(t *testing.T) {
	tr := open(t, filepath.Join(t.TempDir(), "test"), &httptape.Options{MaxBody: 10})
	_, err := tr.Client().Post("http://127.0.0.1:1/", "text/plain", strings.NewReader("eleven bytes"))
	if !isTooLarge(err) {
		t.Errorf("got %v", err)
	}
}

// TestJSONDecoder: a decoder reads the value and not the end behind it; the answer is whole all the same.
func TestJSONDecoder(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"a":`)
		w.(http.Flusher).Flush()
		io.WriteString(w, "1}\n")
	}
	path := both(t, nil, serve, func(c *http.Client, url string) {
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var v struct{ A int }
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil || v.A != 1 {
			t.Errorf("%v, %v", v, err)
		}
	})
	if got := lines(t, path); strings.Contains(got[0], `"error"`) {
		t.Errorf("recorded as cut: %s", got[0])
	}
}

func TestContextThatHasEnded(t *testing.T) {
	tr := open(t, filepath.Join(t.TempDir(), "test"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.RoundTrip(request(t, ctx, "GET", "http://127.0.0.1:1/", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	closed(t, tr)
}

// TestTrailerOfALateSecret: what a later answer names as a secret is taken out of a trailer that came before it.
func TestTrailerOfALateSecret(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"password":"opaque-1f2e3d4c5b6a"}`)
			return
		}
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "of opaque-1f2e3d4c5b6a")
	}
	path := filepath.Join(t.TempDir(), "test")
	recordAt(t, path, nil, serve, func(c *http.Client, url string) {
		get(t, c, url+"/early")
		get(t, c, url+"/late")
	})
	on := onDisk(t, filepath.Dir(path))
	if bytes.Contains(on, []byte("opaque-1f2e3d4c5b6a")) || !bytes.Contains(on, []byte(`"response_trailers":[["X-Sum","of td_`)) {
		t.Errorf("on the tape:\n%s", on)
	}
}
