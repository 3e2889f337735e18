package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/page"
)

// served serves what is shown until the test ends.
func served(t *testing.T, shown *page.Stacks) *page.Server {
	t.Helper()
	l, err := page.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := page.NewServer(shown, bundle, l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask makes a request, headers as pairs, and returns what came.
func ask(t *testing.T, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// TestServer: the page answers who knows its address and comes from nowhere else.
func TestServer(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { agent(tt, 2, 6000) })
	s := served(t, page.ShowRecordings("here", []string{rec.Dir}, nil))
	at := s.URL()
	host := strings.SplitN(strings.TrimPrefix(at, "http://"), "/", 2)[0]
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, url string
		headers     []string
		want        int
	}{
		{"GET", at, nil, 200}, {"GET", at, []string{"Host", "localhost:" + port}, 200}, {"GET", at + "library.json", []string{"Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}, 200},
		{"GET", at, []string{"Host", "example.com"}, 421}, {"GET", at, []string{"Host", "example.com:" + port}, 421}, {"GET", at, []string{"Host", host + "."}, 421},
		{"GET", at, []string{"Origin", "http://example.com"}, 403}, {"GET", at, []string{"Origin", "null"}, 403}, {"GET", at, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", at, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", at, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", at, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", at + "library.json", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"POST", at, nil, 405}, {"HEAD", at, nil, 405}, {"OPTIONS", at, nil, 405}, {"PUT", at + "library.json", nil, 405},
		{"GET", "http://" + host + "/", nil, 404}, {"GET", strings.TrimSuffix(at, "/"), nil, 404}, {"GET", at[:len(at)-2] + "/", nil, 404},
		{"GET", "http://" + host + "/library.json", nil, 404}, {"GET", at + "nothing.json", nil, 404}, {"GET", at + "run/one/live", nil, 204},
		{"GET", at + "run/two/run.json", nil, 404}, {"GET", at + "run/one/payload/" + strings.Repeat("0", 64), nil, 404},
		{"GET", at + "run/one/run.json", nil, 200}, {"GET", at + "search.json?run=one&q=everything", nil, 200}, {"GET", at + "search.json?q=everything", nil, 200},
	} {
		resp, body := ask(t, tt.method, tt.url, tt.headers...)
		if resp.StatusCode != tt.want {
			t.Errorf("%s %s %q: %d, want %d: %.100s", tt.method, tt.url, tt.headers, resp.StatusCode, tt.want, body)
		}
		h := resp.Header
		if h.Get("Access-Control-Allow-Origin") != "" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("Cache-Control") != "no-store" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; ") {
			t.Errorf("headers %v", h)
		}
	}
	if _, err := page.Listen(t.Context(), "0.0.0.0:0"); err == nil {
		t.Error("it listens on every address")
	}
}

// TestBrowse: what is started is not told the address, but a file that leads there, which goes with the server.
func TestBrowse(t *testing.T) {
	s := served(t, page.ShowRecordings("here", nil, nil))
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	program, got := filepath.Join(dir, "browser"), filepath.Join(dir, "got")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n{ cat \"$1\"; ls -l \"$1\"; } >got\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mkfifo(got); err != nil {
		t.Skip("no FIFOs here: ", err)
	}
	t.Chdir(dir)
	done, err := s.Browse(program)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(got) // waits until somebody writes
	done()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "url="+s.URL()) || !strings.Contains(string(b), "-rw-------") {
		t.Errorf("%s", b)
	}
	if left, _ := filepath.Glob(dir + "/tapedeck-ui-*"); len(left) > 0 {
		t.Error(left)
	}
	if _, err := s.Browse(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a program that is not there")
	}
}

// TestRemoved: a run that goes while it is looked at is said to have gone; the list tells of what comes and goes.
func TestRemoved(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { agent(tt, 2, 10) })
	lib := filepath.Dir(rec.Dir)
	shown, err := page.ShowDir(lib, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := served(t, shown)
	list := func() string {
		_, body := ask(t, "GET", s.URL()+"library.json")
		return body
	}
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(lib, old, old), os.Chtimes(rec.Dir, old, old), os.Chtimes(filepath.Join(rec.Dir, recording.ManifestName), old, old)); err != nil {
		t.Fatal(err)
	}
	if first := list(); first != list() || !strings.Contains(first, `"id":"one"`) {
		t.Errorf("%s", first)
	}
	if resp, body := ask(t, "GET", s.URL()+"run/one/run.json"); resp.StatusCode != 200 {
		t.Error(body)
	}
	if err := os.Rename(rec.Dir, filepath.Join(t.TempDir(), "b.rec")); err != nil {
		t.Fatal(err)
	}
	resp, body := ask(t, "GET", s.URL()+"run/one/turn/0.json")
	if resp.StatusCode != 404 || !strings.Contains(body, "the recording has been removed") || strings.Contains(body, lib) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if now := list(); strings.Contains(now, `"id":"one"`) {
		t.Errorf("%s", now)
	}
}

// TestPayloads are bytes that no browser shows.
func TestPayloads(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { agent(tt, 2, 6000) })
	s := served(t, page.ShowRecordings("here", []string{rec.Dir}, nil))
	names, err := os.ReadDir(rec.TapePath() + ".cas")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	resp, body := ask(t, "GET", s.URL()+"run/one/payload/"+names[0].Name())
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(body, "be kind") {
		t.Errorf("%d %v %.100s", resp.StatusCode, resp.Header, body)
	}
}

// TestLive: a run that is being recorded grows in the page, in steps that come to the same as the whole, until it ends.
func TestLive(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { agent(tt, 6, 100) })
	whole, err := os.ReadFile(rec.TapePath())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	rec.Manifest.State, rec.Manifest.Exit = recording.StateRecording, nil
	if err := rec.Manifest.Write(rec.Dir, false); err != nil {
		t.Fatal(err)
	}
	write(t, rec.TapePath(), strings.Join(lines[:4], ""), os.O_TRUNC)
	lock, err := recording.LockExclusive(rec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	shown := page.ShowRecordings("here", []string{rec.Dir}, nil)
	shown.Hurry()
	s := served(t, shown)
	events, err := http.Get(s.URL() + "run/one/live")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	in := bufio.NewScanner(events.Body)
	until := func(want string) {
		t.Helper()
		for in.Scan() {
			if in.Text() == want {
				return
			}
		}
		t.Fatalf("%s did not come: %v", want, in.Err())
	}
	until("data: 3")
	rows := func() page.Index {
		_, body := ask(t, "GET", s.URL()+"run/one/index.json")
		var x page.Index
		if err := json.Unmarshal([]byte(body), &x); err != nil {
			t.Fatal(err, body)
		}
		return x
	}
	if x := rows(); x.Rows != 3 {
		t.Errorf("%d rows", x.Rows)
	}
	write(t, rec.TapePath(), strings.Join(lines[4:9], "")+lines[9][:10], os.O_APPEND)
	until("data: 8")
	if x := rows(); x.Rows != 8 {
		t.Errorf("%d rows", x.Rows)
	}
	write(t, rec.TapePath(), lines[9][10:]+strings.Join(lines[10:], ""), os.O_APPEND)
	until(fmt.Sprint("data: ", len(lines)-2))
	grown := rows()
	aside := rec.TapePath() + ".aside"
	if err := os.Rename(rec.TapePath(), aside); err != nil {
		t.Fatal(err)
	}
	if res, body := ask(t, "GET", s.URL()+"run/one/index.json"); res.StatusCode != http.StatusInternalServerError {
		t.Errorf("without its tape: %d %s", res.StatusCode, body)
	}
	if err := os.Rename(aside, rec.TapePath()); err != nil {
		t.Fatal(err)
	}
	rec.Manifest.State, rec.Manifest.Exit = recording.StateFinished, &recording.Exit{}
	if err := rec.Manifest.Write(rec.Dir, false); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	until("event: ended")
	want, _ := json.Marshal(rows())
	if got, _ := json.Marshal(grown); string(got) != string(want) {
		t.Errorf("in steps\n%s, at once\n%s", got, want)
	}
}

func write(t *testing.T, path, text string, flag int) {
	t.Helper()
	f, err := os.OpenFile(path, flag|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestDirectories: a library by its own name or that of its work tree, else what lies below.
func TestDirectories(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { agent(tt, 1, 10) })
	lib := filepath.Dir(rec.Dir)
	for _, dir := range []string{lib, filepath.Dir(lib), filepath.Dir(filepath.Dir(lib))} {
		shown, err := page.ShowDir(dir, nil)
		if err != nil || shown == nil {
			t.Fatal(shown, err)
		}
		b, err := shown.Document(t.Context(), "library.json")
		if err != nil || !strings.Contains(string(b), `"id":"one"`) {
			t.Errorf("%s: %s, %v", dir, b, err)
		}
	}
	if shown, err := page.ShowDir(rec.Dir, nil); shown != nil || err != nil {
		t.Error("a recording is taken for a library", err)
	}
}
