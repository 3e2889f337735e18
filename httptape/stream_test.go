package httptape_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// step serves events, each after the caller has said that it has the one before.
func steps(n int, next <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range n {
			if i > 0 {
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
			}
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	}
}

// TestStreamStaysStream: while recording each event reaches the caller before the next is sent, and each is a chunk; on
// replay each read gives one.
func TestStreamStaysStream(t *testing.T) {
	next := make(chan struct{}, 1)
	read := func(c *http.Client, url string) (reads []string) {
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		buf := make([]byte, 1024)
		for {
			n, err := res.Body.Read(buf)
			if n > 0 {
				reads = append(reads, string(buf[:n]))
				select {
				case next <- struct{}{}:
				default:
				}
			}
			if err == io.EOF {
				return reads
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	want := "data: 0\n\n|data: 1\n\n|data: 2\n\n"
	both(t, nil, steps(3, next), func(c *http.Client, url string) {
		if got := strings.Join(read(c, url), "|"); got != want {
			t.Errorf("reads %q", got)
		}
	})
}

// TestSmallReads: a chunk may be read in pieces, and a read never goes beyond it.
func TestSmallReads(t *testing.T) {
	path := timed(t)
	rewrite(t, path, func(ex *tape.Exchange) { ex.Stream = []tape.Chunk{{Length: 3}, {Offset: 3, Length: 1}} })
	tr := open(t, path, nil)
	res, err := tr.Client().Get("http://timed.example/")
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for buf := make([]byte, 2); ; {
		n, err := res.Body.Read(buf)
		if n > 0 {
			sizes = append(sizes, n)
		}
		if err != nil {
			break
		}
	}
	if got := fmt.Sprint(sizes); got != "[2 1 1]" {
		t.Errorf("reads of %s bytes", got)
	}
	closed(t, tr)
}

// timed writes a tape whose answer came in chunks after 100 ms and 400 ms.
func timed(t *testing.T) (path string) {
	t.Helper()
	path, _ = record(t, nil, say("abcd"), func(c *http.Client, url string) { get(t, c, url) })
	rewrite(t, path, func(ex *tape.Exchange) {
		ex.URL = "http://timed.example/"
		ex.Stream = []tape.Chunk{{Length: 2, TMS: 100}, {Offset: 2, Length: 2, TMS: 400}}
	})
	return path
}

// TestSpeed: an answer comes at once, as recorded, or as fast as asked for, under a clock that nobody waits for.
func TestSpeed(t *testing.T) {
	path := timed(t)
	for speed, want := range map[float64]time.Duration{0: 0, 1: 400 * time.Millisecond, 4: 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			tr := open(t, path, &httptape.Options{Speed: speed})
			begun := time.Now()
			if got := get(t, tr.Client(), "http://timed.example/"); got != "abcd" {
				t.Errorf("got %q", got)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("speed %v took %v, want %v", speed, took, want)
			}
			closed(t, tr)
		})
	}
}

// TestHeadComesWithTheFirstChunk: a tape does not say when the head came.
func TestHeadComesWithTheFirstChunk(t *testing.T) {
	path := timed(t)
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, path, &httptape.Options{Speed: 1})
		begun := time.Now()
		res, err := tr.RoundTrip(request(t, t.Context(), "GET", "http://timed.example/", nil))
		if err != nil || time.Since(begun) != 100*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(begun))
		}
		res.Body.Close()
		closed(t, tr)

		tr = open(t, path, &httptape.Options{Speed: 0.001})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := tr.RoundTrip(request(t, ctx, "GET", "http://timed.example/", nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		closed(t, tr)
	})
}

// TestCancelWhileWaiting: a context that ends wakes a read that waits for its chunk, and so does Close.
func TestCancelWhileWaiting(t *testing.T) {
	path := timed(t)
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, path, &httptape.Options{Speed: 0.001})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Second)
		defer cancel()
		res, err := tr.RoundTrip(request(t, ctx, "GET", "http://timed.example/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 3)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		res.Body.Close()
		closed(t, tr)

		tr = open(t, path, &httptape.Options{Speed: 0.001})
		if res, err = tr.RoundTrip(request(t, t.Context(), "GET", "http://timed.example/", nil)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { _, err := io.ReadFull(res.Body, make([]byte, 3)); ended <- err }()
		synctest.Wait()
		res.Body.Close()
		if err := <-ended; err == nil {
			t.Error("read after Close")
		}
		closed(t, tr)
	})
}

// TestClosedEarly: what the caller saw is what the tape holds, and who reads on gets an error and no more bytes.
func TestClosedEarly(t *testing.T) {
	next := make(chan struct{})
	path, url := record(t, nil, steps(2, next), func(c *http.Client, url string) {
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		io.ReadFull(res.Body, make([]byte, 9))
		res.Body.Close()
		if _, err := res.Body.Read(make([]byte, 1)); err == nil {
			t.Error("read after Close")
		}
	})
	synctest.Test(t, func(t *testing.T) { // it waits for the caller to close again
		tr := open(t, path, nil)
		res, err := tr.RoundTrip(request(t, t.Context(), "GET", url, nil))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		var e *httptape.RecordedError
		if string(b) != "data: 0\n\n" || !errors.As(err, &e) {
			t.Errorf("%q, %v", b, err)
		}
		closed(t, tr)
	})
}

// TestStillOpen: Close of the Transport ends what is under way.
func TestStillOpen(t *testing.T) {
	next := make(chan struct{})
	var body io.ReadCloser
	path, _ := record(t, nil, steps(2, next), func(c *http.Client, url string) {
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body = res.Body
		io.ReadFull(body, make([]byte, 9))
	})
	if _, err := body.Read(make([]byte, 1)); err == nil {
		t.Error("the answer goes on")
	}
	if got := lines(t, path); !strings.Contains(got[0], "the program ended the request") {
		t.Errorf("recorded %s", got[0])
	}
}

// TestDeadline: one that passed while recording is given again at once.
func TestDeadline(t *testing.T) {
	next := make(chan struct{})
	path, url := record(t, nil, steps(2, next), func(c *http.Client, url string) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		res, err := c.Do(request(t, ctx, "GET", url, nil))
		if err == nil {
			defer res.Body.Close()
			_, err = io.ReadAll(res.Body)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("recording: %v", err)
		}
	})
	tr := open(t, path, nil)
	res, err := tr.Client().Get(url)
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	var timeout net.Error
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("replay: %v", err)
	}
	closed(t, tr)
}

// TestErrors: an upstream that fails, fails again in the same way.
func TestErrors(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	hijack := func(bytes string, reset bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, bytes)
			if reset {
				conn.(*net.TCPConn).SetLinger(0)
			}
			conn.Close()
		}
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		url   string // "" for the server's own
		is    func(error) bool
		body  string
	}{
		"refused": {url: dead.URL, is: func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		"no host": {url: "http://no.such.host.invalid/", is: func(err error) bool {
			var e *net.DNSError
			return errors.As(err, &e) && e.IsNotFound
		}},
		"closed before the answer": {serve: hijack("", false), is: func(err error) bool { return errors.Is(err, io.EOF) }},
		"cut in the body": {serve: hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", false), body: "half",
			is: func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"times out": {serve: func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, is: func(err error) bool {
			var e net.Error
			return errors.As(err, &e) && e.Timeout()
		}},
		"reset in the body": {serve: hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", true),
			is: func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
	} {
		t.Run(name, func(t *testing.T) {
			base := &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond, DisableKeepAlives: true}
			if name != "times out" {
				base.ResponseHeaderTimeout = 0
			}
			if name == "no host" {
				base.DialContext = func(context.Context, string, string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "no.such.host.invalid", IsNotFound: true}}
				}
			}
			both(t, &httptape.Options{Base: base}, c.serve, func(client *http.Client, url string) {
				if c.url != "" {
					url = c.url
				}
				// POST: net/http tries nothing again
				res, err := client.Post(url, "text/plain", strings.NewReader("x"))
				var body []byte
				if err == nil {
					body, err = io.ReadAll(res.Body)
					res.Body.Close()
				}
				if !c.is(err) || c.body != "" && string(body) != c.body {
					t.Errorf("%q, %v", body, err)
				}
			})
		})
	}
}

// TestUpgrade: what cannot be recorded is refused, and said.
func TestUpgrade(t *testing.T) {
	tr := open(t, filepath.Join(t.TempDir(), "test"), nil)
	req := request(t, t.Context(), "GET", "http://127.0.0.1:1/", nil)
	req.Header.Set("Upgrade", "websocket")
	if _, err := tr.RoundTrip(req); !errors.Is(err, httptape.ErrUpgrade) {
		t.Errorf("got %v", err)
	}
	closed(t, tr)
}

// never is an upstream that does not answer.
type never struct{}

func (never) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestCancelAfterLong: a caller that cancelled after minutes may take as long on a replay; one that does not cancel gets an
// error in the end.
func TestCancelAfterLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long")
	ask := func(t *testing.T, o *httptape.Options, after time.Duration) (time.Duration, error) {
		begun := time.Now()
		tr := open(t, path, o)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(after, cancel)
		_, err := tr.RoundTrip(request(t, ctx, "GET", "http://long.example/", nil))
		closed(t, tr)
		return time.Since(begun), err
	}
	for _, tt := range []struct {
		o           *httptape.Options
		after, took time.Duration
		cancelled   bool
	}{
		{&httptape.Options{Mode: httptape.ModeRecordOnly, Base: never{}}, 5 * time.Minute, 5 * time.Minute, true},
		{nil, 5 * time.Minute, 5 * time.Minute, true},
		{nil, time.Hour, 5*time.Minute + 10*time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			took, err := ask(t, tt.o, tt.after)
			if took != tt.took || errors.Is(err, context.Canceled) != tt.cancelled {
				t.Errorf("cancelled after %v: took %v, %v", tt.after, took, err)
			}
		})
	}
}
