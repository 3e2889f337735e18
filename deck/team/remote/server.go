package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/net/netutil"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/queue"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// Options say what a server gives, and how much of it. Zero fields have the defaults named beside them.
type Options struct {
	Store       *team.Store
	Queue       *queue.Queue  // of the store; nil answers nothing about jobs
	Signer      note.Signer   // of tombstones
	MaxPush     int64         // bytes of a packed recording; DefaultMaxPush
	MaxUnpacked int64         // bytes of what is in one; packed.DefaultMaxBytes
	Connections int           // at once; 1,024
	SearchStep  time.Duration // when a search is answered first; DefaultSearchStep
	TLS         *tls.Config   // nil speaks HTTP in the clear
	Logger      *slog.Logger  // nil is silent
}

// What an Options has that says nothing.
const (
	DefaultMaxPush    = 2 << 30
	DefaultSearchStep = 250 * time.Millisecond
)

const (
	maxBody    = 4 << 20
	maxRuns    = 10_000
	maxRows    = 32 << 20 // bytes that the runs of an answer have in the database
	maxText    = 4 << 10  // bytes of what is looked for
	perProject = 16
	databases  = 32               // connections to the database
	pushing    = 4                // runs that are unpacked and written at once; the others wait
	uploads    = 16               // times MaxPush: bytes that are uploaded at once
	perUpload  = 4                // times MaxPush: those of one project
	patience   = time.Minute      // before what a client sends or takes must have the speed of slowest, and for each silence
	slowest    = 32 << 10         // bytes a second
	jsonWithin = 30 * time.Minute // a purge of PostgreSQL rewrites tables
)

// A Server answers requests. It may be used by several goroutines.
type Server struct {
	o       Options
	log     *slog.Logger
	writers chan struct{} // one entry a push under way

	mu       sync.Mutex
	active   map[string]int   // requests under way by project
	uploads  map[string]int64 // bytes of pushes under way by project
	uploaded int64            // those of all
	read     map[reading]time.Time
}

// New makes a server; o must have a Store and a Signer.
func New(o *Options) *Server {
	s := &Server{o: *o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), writers: make(chan struct{}, pushing), active: make(map[string]int), uploads: make(map[string]int64), read: make(map[reading]time.Time)}
	if o.Store != nil {
		o.Store.Bound(databases)
	}
	s.o.MaxPush, s.o.Connections, s.o.SearchStep = cmp.Or(o.MaxPush, DefaultMaxPush), cmp.Or(o.Connections, 1024), cmp.Or(o.SearchStep, DefaultSearchStep)
	return s
}

// Serve answers who connects to l until ctx ends; what is under way then has ten seconds to end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s, TLSConfig: s.o.TLS, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError)}
	ended := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer stop()
		ended <- errors.Join(server.Shutdown(last), server.Close())
	})()
	serve := func(l net.Listener) error { return server.Serve(l) }
	if s.o.TLS != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(netutil.LimitListener(l, s.o.Connections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// A call is a request of who has a token.
type call struct {
	*Server
	who *team.Token
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pace := newPace(w)
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path == "/healthz" {
		io.WriteString(w, "ok\n")
		return
	}
	err := s.serve(w, r, pace)
	if err == nil {
		return
	}
	if pace.began { // an answer cannot be taken back
		s.log.Warn("an answer was cut short", "error", err)
		panic(http.ErrAbortHandler)
	}
	s.say(w, r, pace, nil, err)
}

// say answers with a result, an error, or both.
func (s *Server) say(w http.ResponseWriter, r *http.Request, pace *pace, result any, err error) {
	var a answer
	status := http.StatusOK
	if err != nil {
		var ours bool
		if a.Error, status, ours = refuse(err); ours && r.Context().Err() == nil {
			s.log.Error("a request failed", "request", r.URL.Path, "error", err)
		}
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		s.log.Warn("a request was refused", "request", r.URL.Path, "why", a.Error.Code, "peer", r.RemoteAddr)
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if result != nil {
		if a.Result, err = json.Marshal(result); err != nil {
			s.log.Error("an answer cannot be written", "request", r.URL.Path, "error", err)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(pace.writer(w)).Encode(&a) // a client that is gone reads nothing
}

// serve answers a request, but for the error, of which nothing has been said yet unless the pace has begun.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, pace *pace) error {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return team.ErrNoToken
	}
	who, err := s.o.Store.Identify(r.Context(), secret)
	if err != nil {
		return err
	}
	c := &call{s, who}
	query := r.URL.Query()
	if query.Has("project") && query.Get("project") != who.Project {
		return ErrProject
	}
	if !s.enter(who.Project) {
		return ErrBusy
	}
	defer s.leave(who.Project)
	ctx := team.As(r.Context(), who.Name)
	r = r.WithContext(ctx)
	switch at := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/"); at {
	case "POST push":
		return c.push(w, r, pace)
	case "GET blob":
		return c.blob(w, r, pace)
	default:
		name, post := strings.CutPrefix(at, "POST ")
		m, known := methods[name]
		if !known {
			m, known = jobMethods[name]
		}
		if !post || !known {
			return ErrRequest
		}
		if err := c.may(m.role); err != nil {
			return err
		}
		body, err := io.ReadAll(pace.reader(http.MaxBytesReader(w, r.Body, maxBody)))
		if err != nil {
			return tooMuch(err)
		}
		pace.read()
		ctx, stop := context.WithTimeout(ctx, jsonWithin)
		defer stop()
		result, err := m.do(ctx, c, body)
		s.say(w, r, pace, result, err)
		return nil
	}
}

// enter reports whether one request more of a project may be under way.
func (s *Server) enter(project string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[project] == perProject {
		return false
	}
	s.active[project]++
	return true
}

func (s *Server) leave(project string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[project]--; s.active[project] == 0 {
		delete(s.active, project)
	}
}

// take reports whether so many bytes more of a project may be uploaded now; give ends that.
func (s *Server) take(project string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uploads[project]+n > perUpload*s.o.MaxPush || s.uploaded+n > uploads*s.o.MaxPush {
		return false
	}
	s.uploads[project], s.uploaded = s.uploads[project]+n, s.uploaded+n
	return true
}

func (s *Server) give(project string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploaded -= n
	if s.uploads[project] -= n; s.uploads[project] == 0 {
		delete(s.uploads, project)
	}
}

func (c *call) may(role string) error {
	if !c.who.May(role) {
		return fmt.Errorf("%w %s", ErrRole, role)
	}
	return nil
}

func tooMuch(err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("%w: %d bytes", ErrTooMuch, over.Limit)
	}
	return fmt.Errorf("%w (its body did not come whole)", ErrRequest)
}

// push takes a packed recording.
func (c *call) push(w http.ResponseWriter, r *http.Request, pace *pace) error {
	if err := c.may(team.RolePush); err != nil {
		return err
	}
	o := &team.PushOptions{Project: c.who.Project, Again: r.URL.Query().Get("again") != "", Tags: r.URL.Query()["tag"]}
	if err := c.may(team.RoleAdmin); o.Again && err != nil {
		return err
	}
	if err := team.CheckTags(o.Tags...); err != nil {
		return err
	}
	var verdict *library.Verdict
	if b, err := base64.StdEncoding.DecodeString(r.Header.Get(verdictHeader)); err != nil || len(b) > 0 && json.Unmarshal(b, &verdict) != nil {
		return ErrRequest
	}
	if r.ContentLength > c.o.MaxPush {
		return tooMuch(&http.MaxBytesError{Limit: c.o.MaxPush})
	}
	size := r.ContentLength
	if size < 0 { // it is not said
		size = c.o.MaxPush
	}
	if !c.take(c.who.Project, size) {
		return ErrBusy
	}
	defer c.give(c.who.Project, size)
	temp, err := recording.NewTemp(os.TempDir(), library.OpenPrefix)
	if err != nil {
		return err
	}
	defer temp.Remove()
	f, err := os.Create(filepath.Join(temp.Dir, "packed"))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, pace.reader(http.MaxBytesReader(w, r.Body, c.o.MaxPush))); err != nil {
		if _, ours := errors.AsType[*os.PathError](err); ours {
			return err
		}
		return tooMuch(err)
	}
	pace.read()
	run, there, err := c.write(r.Context(), f.Name(), verdict, o)
	if err == nil && there {
		err = c.audit(r.Context(), "push", run.ID)
	}
	if err != nil {
		return err
	}
	c.say(w, r, pace, pushed{run, there}, nil)
	return nil
}

// write has a packed recording enter the store, when it is its turn.
func (c *call) write(ctx context.Context, file string, verdict *library.Verdict, o *team.PushOptions) (run *team.Run, there bool, err error) {
	select {
	case c.writers <- struct{}{}:
		defer func() { <-c.writers }() // also where it panics
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	return c.o.Store.PushPacked(ctx, file, packed.Limits{Bytes: c.o.MaxUnpacked}, verdict, o)
}

// blob gives the packed recording of a run, named by all of its id, if its bytes are still those that the client knows of.
func (c *call) blob(w http.ResponseWriter, r *http.Request, pace *pace) error {
	if err := c.may(team.RoleRead); err != nil {
		return err
	}
	pace.read()
	id := r.URL.Query().Get("run")
	run, err := c.o.Store.Run(r.Context(), c.who.Project, id)
	if err != nil {
		return err
	}
	if run.Digest.String() != r.URL.Query().Get("digest") {
		return fmt.Errorf("%w: %s, as it was", team.ErrNoRun, id)
	}
	from, err1 := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	n, err2 := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
	if err1 != nil || err2 != nil || from < 0 || from > run.Size {
		return ErrRequest
	}
	if n < 0 || n > run.Size-from {
		n = run.Size - from
	}
	body, err := c.o.Store.Blob(r.Context(), run, from, n)
	if _, missing := errors.AsType[*cas.MissingError](err); missing {
		return fmt.Errorf("%s: %w", id, ErrDamaged)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	what := "read"
	if n == run.Size {
		what = "pull"
	}
	if err := c.saw(r.Context(), what, id); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/zstd")
	w.Header().Set("Content-Length", fmt.Sprint(n))
	_, err = io.CopyN(pace.writer(w), body, n)
	return err
}

// A reading is a line of the audit about what changes nothing.
type reading struct{ token, project, what, about string }

// Who reads the same again and again has one line of the audit a minute.
const (
	readAgain = time.Minute
	maxRead   = 10_000 // lines that are remembered
)

// saw has the audit say what the token is shown now.
func (c *call) saw(ctx context.Context, what, about string) error {
	key := reading{c.who.Name, c.who.Project, what, about}
	c.mu.Lock()
	at, known := c.read[key]
	c.mu.Unlock()
	if known && time.Since(at) < readAgain {
		return nil
	}
	if err := c.audit(ctx, what, about); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.read) >= maxRead {
		clear(c.read)
	}
	c.read[key] = time.Now()
	return nil
}

func (c *call) audit(ctx context.Context, what, about string) error {
	return c.o.Store.Audit(ctx, c.who.Project, what, about)
}

// A method answers one kind of request.
type method struct {
	role string
	do   func(ctx context.Context, c *call, body []byte) (any, error)
}

// on is a method of who has a role, given what is asked for.
func on[In any](role string, f func(ctx context.Context, c *call, in *In) (any, error)) method {
	return method{role, func(ctx context.Context, c *call, body []byte) (any, error) {
		in := new(In)
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(in); err != nil {
			return nil, ErrRequest
		}
		return f(ctx, c, in)
	}}
}

// methods are those with a JSON object of their own, by name.
var methods = map[string]method{
	"find": on(team.RoleRead, func(ctx context.Context, c *call, in *runAsked) (any, error) {
		if in.ID == "" {
			return nil, ErrRequest
		}
		run, err := c.o.Store.Find(ctx, c.who.Project, in.ID)
		if err != nil {
			return nil, err
		}
		return c.shown(ctx, "show", run.ID, run, nil)
	}),
	"runs": on(team.RoleRead, func(ctx context.Context, c *call, in *team.Query) (any, error) {
		if err := c.bound(in, ""); err != nil {
			return nil, err
		}
		runs, err := c.o.Store.Runs(ctx, in)
		return c.shown(ctx, "list", "", runs, fits(len(runs), err))
	}),
	"search": on(team.RoleRead, func(ctx context.Context, c *call, in *searchAsked) (any, error) {
		if err := c.bound(&in.Query, in.Text); err != nil {
			return nil, err
		}
		began := time.Now()
		hits, err := c.o.Store.Search(ctx, in.Text, &in.Query)
		found, err := c.shown(ctx, "search", "", hits, fits(len(hits), err)) // its words are what somebody thinks of a run
		_ = lane.Pause(ctx, nil, rest(c.o.SearchStep, time.Since(began)))    // who has gone is answered nothing
		return found, err
	}),
	"verdicts": on(team.RoleRead, func(ctx context.Context, c *call, in *verdictsAsked) (any, error) {
		slices.Sort(in.IDs)
		in.IDs = slices.Compact(in.IDs)
		if len(in.IDs) > maxRuns {
			return nil, fits(len(in.IDs), nil)
		}
		found, err := c.o.Store.Verdicts(ctx, c.who.Project, in.IDs)
		return c.shown(ctx, "verdicts", "", found, err)
	}),
	"verdict": on(team.RoleRead, func(ctx context.Context, c *call, in *verdictAsked) (any, error) {
		v, err := c.o.Store.Verdict(ctx, c.who.Project, in.ID, in.Tapedeck, in.Program)
		if err != nil || v == nil {
			return verdictFound{}, err
		}
		return c.shown(ctx, "verdicts", v.Run, verdictFound{v, v.Detail}, nil)
	}),
	"remove": on(team.RoleAdmin, func(ctx context.Context, c *call, in *removeAsked) (any, error) {
		if err := team.CheckReason(in.Why); err != nil {
			return nil, err
		}
		return c.o.Store.Remove(ctx, c.who.Project, in.ID, in.Why, c.o.Signer) // a tombstone beside an error too
	}),
	"tag": on(team.RolePush, func(ctx context.Context, c *call, in *tagAsked) (any, error) {
		return c.o.Store.Tag(ctx, c.who.Project, in.ID, in.Add, in.Remove)
	}),
	"hold": on(team.RoleAdmin, func(ctx context.Context, c *call, in *removeAsked) (any, error) {
		if err := team.CheckReason(in.Why); err != nil {
			return nil, err
		}
		if in.Why == "" {
			return nil, fmt.Errorf("%w: a hold wants one", team.ErrReason)
		}
		return c.o.Store.Hold(ctx, c.who.Project, in.ID, c.who.Name, in.Why)
	}),
	"release": on(team.RoleAdmin, func(ctx context.Context, c *call, in *runAsked) (any, error) {
		return c.o.Store.Release(ctx, c.who.Project, in.ID)
	}),
	"expired": on(team.RoleAdmin, func(ctx context.Context, c *call, in *team.Rule) (any, error) {
		out, err := c.o.Store.Expired(ctx, c.who.Project, in)
		return c.shown(ctx, "list", "", out, err)
	}),
	"prune": on(team.RoleAdmin, func(ctx context.Context, c *call, in *team.Rule) (any, error) {
		return c.o.Store.Prune(ctx, c.who.Project, in, c.o.Signer)
	}),
	"sweep": on(team.RoleAdmin, func(ctx context.Context, c *call, _ *nothing) (any, error) {
		_, err := c.o.Store.Sweep(ctx) // of all projects: which blobs went is told nobody
		return nothing{}, err
	}),
}

// bound has a query be about the token's project, and ask for no more than an answer holds: one more, so that it can be told.
func (c *call) bound(q *team.Query, text string) error {
	if q.Limit < 0 || len(text)+len(q.Agent)+len(q.Model) > maxText {
		return ErrRequest
	}
	q.Project, q.Limit, q.MaxBytes = c.who.Project, min(q.Limit, maxRuns+1), maxRows
	return team.CheckTags(q.Tags...)
}

func fits(n int, err error) error {
	switch {
	case errors.Is(err, team.ErrBytes):
		return fmt.Errorf("%w: runs of %d MiB; --limit, --since and the like choose fewer", ErrTooMuch, maxRows>>20)
	case err == nil && n > maxRuns:
		return fmt.Errorf("%w: %d runs; --limit, --since and the like choose fewer", ErrTooMuch, maxRuns)
	}
	return err
}

// shown has the audit say what was found, if it was; else nobody is told of it.
func (c *call) shown(ctx context.Context, what, about string, found any, err error) (any, error) {
	if err == nil {
		err = c.saw(ctx, what, about)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// rest is how long an answer that took so long is held: until a step, or twice, four times, … as much is over.
func rest(step, took time.Duration) time.Duration {
	for step < took {
		step *= 2
	}
	return step - took
}

// A pace has a client that is too slow cut off: it moves the deadlines of a connection as bytes go through it.
type pace struct {
	conn  *http.ResponseController
	start time.Time
	n     int64
	began bool // the answer has
}

func newPace(w http.ResponseWriter) *pace {
	p := &pace{conn: http.NewResponseController(w), start: time.Now()}
	_ = p.conn.SetReadDeadline(p.until()) // a connection without deadlines has none
	_ = p.conn.SetWriteDeadline(time.Time{})
	return p
}

// until is when the next byte must go through: who was fast may not be silent the longer for it.
func (p *pace) until() time.Time {
	due, next := p.start.Add(patience+time.Duration(float64(p.n)/slowest*float64(time.Second))), time.Now().Add(patience)
	if next.Before(due) {
		return next
	}
	return due
}

// read says that the request is there whole: a long answer is no fault of the client's.
func (p *pace) read() { _ = p.conn.SetReadDeadline(time.Time{}) }

func (p *pace) reader(r io.Reader) io.Reader { return pacedReader{p, r} }

// writer is that of an answer, which begins with the first byte.
func (p *pace) writer(w io.Writer) io.Writer {
	p.start, p.n = time.Now(), 0
	return pacedWriter{p, w}
}

type pacedReader struct {
	p *pace
	r io.Reader
}

func (r pacedReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.p.n += int64(n)
	_ = r.p.conn.SetReadDeadline(r.p.until())
	return n, err
}

type pacedWriter struct {
	p *pace
	w io.Writer
}

func (w pacedWriter) Write(b []byte) (written int, err error) {
	w.p.began = true
	for some := range slices.Chunk(b, slowest) { // each has its time
		_ = w.p.conn.SetWriteDeadline(w.p.until())
		n, err := w.w.Write(some)
		w.p.n, written = w.p.n+int64(n), written+n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
