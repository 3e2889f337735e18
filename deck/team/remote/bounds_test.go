package remote

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/team"
)

// written is a log that is written and read at once.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestPanic: a panic is logged, and whoever panics while a run is written leaves the turn to the next.
func TestPanic(t *testing.T) {
	var log written
	s := New(&Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.o.Store = new(team.Store) // each use of which panics
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+l.Addr().String()+"/v1/runs", http.NoBody)
	must(t, err)
	req.Header.Set("Authorization", "Bearer x")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("a panic is answered: %s", resp.Status)
	}
	stop()
	must(t, <-ended)
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "panic serving") {
		t.Errorf("logged: %.200s", got)
	}
	file := filepath.Join(t.TempDir(), "packed")
	_, err = library.Pack(t.Context(), made(t, "one", "x"), file, nil)
	must(t, err)
	func() {
		defer func() {
			if recover() == nil || len(s.writers) > 0 {
				t.Errorf("%d turns are taken", len(s.writers))
			}
		}()
		_, _, err := (&call{s, new(team.Token)}).write(t.Context(), file, nil, new(team.PushOptions))
		t.Errorf("no panic: %v", err)
	}()
}

// TestLongAnswer: an answer that is too long is refused by its bytes, with what to do.
func TestLongAnswer(t *testing.T) {
	r := newRig(t, &Options{SearchStep: time.Millisecond})
	c := r.client(r.token("eva", "p", team.Roles...))
	push(t, c, made(t, "one", "a tulip"), false)
	db, err := sql.Open("sqlite", r.store.Name()[len("sqlite://"):])
	must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "UPDATE runs SET facts = json_set(facts, '$.argv[0]', hex(zeroblob(?)))", maxRows/2)
	must(t, err)
	_, err = c.Runs(t.Context(), &team.Query{})
	_, err2 := c.Search(t.Context(), "tulip", &team.Query{})
	for _, err := range []error{err, err2} {
		if !errors.Is(err, ErrTooMuch) || !strings.Contains(err.Error(), "choose fewer") {
			t.Errorf("%v", err)
		}
	}
}

// TestBadRequests: what no run can have is refused before the store is asked.
func TestBadRequests(t *testing.T) {
	r := newRig(t, &Options{SearchStep: time.Millisecond})
	token := r.token("eva", "p", team.Roles...)
	push(t, r.client(token), made(t, "one", "a tulip"), false)
	tags := strings.Repeat(`"t",`, 100) + `"t"`
	why := strings.Repeat("x", 1<<10+1)
	for request, want := range map[string]string{
		`tag {"ID":"one","Add":[` + tags + `]}`: "bad_tags", `tag {"ID":"one","Remove":[` + tags + `]}`: "bad_tags", `runs {"Tags":[` + tags + `]}`: "bad_tags", `search {"Text":"tulip","Query":{"Tags":[` + tags + `]}}`: "bad_tags",
		`hold {"ID":"one"}`: "bad_reason", `hold {"ID":"one","Why":"` + why + `"}`: "bad_reason", `remove {"ID":"one","Why":"` + why + `"}`: "bad_reason",
		`runs {"Model":"` + strings.Repeat("x", maxText+1) + `"}`: "bad_request", `search {"Text":"` + strings.Repeat("x ", maxText) + `"}`: "bad_request", `verdicts {"IDs":["` + manyIDs(maxRuns+1) + `"]}`: "too_much", `cancel {"IDs":[` + strings.Repeat("1,", maxRuns) + `1]}`: "bad_request",
	} {
		name, body, _ := strings.Cut(request, " ")
		if status, got := r.raw(token, "POST", "/v1/"+name, body); !strings.Contains(got, `"code":"`+want+`"`) {
			t.Errorf("%.60s: %d %.200s, want %s", request, status, got, want)
		}
	}
	if status, got := r.raw(token, "POST", "/v1/push?"+strings.Repeat("tag=t&", 101), ""); !strings.Contains(got, "bad_tags") {
		t.Errorf("pushed with tags: %d %s", status, got)
	}
	if status, got := r.raw(token, "POST", "/v1/verdicts", `{"IDs":["one`+strings.Repeat(`","one`, maxRuns)+`"]}`); status != 200 {
		t.Errorf("one id, often: %d %.200s", status, got)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.url+"/v1/runs", strings.NewReader("{}"))
	must(t, err)
	for header, want := range map[string]int{token: 401, "Basic " + token: 401, "bearer " + token: 200} {
		req.Header.Set("Authorization", header)
		req.Body = io.NopCloser(strings.NewReader("{}"))
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%.7s: %d, want %d", header, resp.StatusCode, want)
		}
	}
}

func manyIDs(n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	return strings.Join(ids, `","`)
}

// TestReadAgain: who reads the same again has one line of the audit, and each change has its own.
func TestReadAgain(t *testing.T) {
	r := newRig(t, &Options{SearchStep: time.Millisecond})
	c := r.client(r.token("eva", "p", team.Roles...))
	push(t, c, made(t, "one", "a tulip"), false)
	for range 3 {
		_, err := c.Runs(t.Context(), &team.Query{})
		must(t, err)
		_, err = c.Find(t.Context(), "", "one")
		must(t, err)
		_, err = c.Search(t.Context(), "tulip", &team.Query{})
		must(t, err)
		_, err = c.Verdicts(t.Context(), "", []string{"one"})
		must(t, err)
		_, err = c.Tag(t.Context(), "", "one", []string{"a"}, nil)
		must(t, err)
	}
	_, err := r.client(r.token("adam", "p", team.RoleRead)).Runs(t.Context(), &team.Query{})
	must(t, err)
	acts, err := r.store.Acts(t.Context(), nil, 100)
	must(t, err)
	var got []string
	for _, a := range acts {
		got = append(got, strings.TrimSpace(a.Token+" "+a.What+" "+a.About))
	}
	if want := "grant eva,eva push one,eva list,eva show one,eva search,eva verdicts,eva tag one,eva tag one,eva tag one,grant adam,adam list"; strings.Join(got, ",") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ","), want)
	}
}

// TestTold: a client is told of an error that was made for it, and of none that it is joined with: a sweep is about all projects.
func TestTold(t *testing.T) {
	inner := errors.New("open /srv/blobs/0123: permission denied")
	held := fmt.Errorf("one %w by eva", team.ErrHeld)
	for _, c := range []struct {
		err        error
		code, text string
	}{
		{held, "on_hold", held.Error()}, {errors.Join(inner, held), "on_hold", held.Error()}, {fmt.Errorf("blob 0123: %w", errors.Join(held, inner)), "on_hold", held.Error()},
		{inner, "internal", ErrInternal.Error()}, {errors.Join(inner, team.ErrRead), "being_read", team.ErrRead.Error()},
	} {
		if r, _, _ := refuse(c.err); r.Code != c.code || r.Text != c.text {
			t.Errorf("%q: told %q", c.err, r)
		}
	}
}

// TestUploads: the bytes that are uploaded at once are bounded, and one project does not have all of them.
func TestUploads(t *testing.T) {
	const size = 64 << 10
	r := newRig(t, &Options{MaxPush: size})
	begin := func(token string) (net.Conn, string) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST /v1/push HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", token, size)
		b := make([]byte, 12)
		_, err = io.ReadFull(conn, b)
		must(t, err)
		return conn, string(b[9:])
	}
	var first net.Conn
	for project := range uploads / perUpload {
		token := r.token(fmt.Sprint("t", project), fmt.Sprint("p", project), team.RolePush)
		for n := range perUpload + 1 {
			conn, got := begin(token)
			if (got == "100") != (n < perUpload) || got != "100" && got != "429" {
				t.Fatalf("project %d, upload %d: %s", project, n, got)
			}
			if first == nil {
				first = conn
			}
		}
	}
	more := r.token("more", "more", team.RolePush)
	if _, got := begin(more); got != "429" {
		t.Errorf("one more: %s", got)
	}
	fmt.Fprint(first, strings.Repeat("x", size)) // which is no recording
	if _, err := io.ReadFull(first, make([]byte, 40)); err != nil {
		t.Fatal(err)
	}
	for _, got := begin(more); got != "100"; _, got = begin(more) { // the answer leaves a moment before its place is free
		if t.Context().Err() != nil {
			t.Fatal(got)
		}
	}
}
