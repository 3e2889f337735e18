package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

const (
	sessionHeader  = "Mcp-Session-Id"
	protocolHeader = "Mcp-Protocol-Version"
	lastEvent      = "Last-Event-Id"
	// firstModern is the first version without sessions.
	firstModern = "2026-07-28"
)

// Handler answers lenient clients over Streamable HTTP, every version of it. A client that begins with initialize has a session, and
// the tape for itself; those of the versions without sessions share one. What the server said within a request comes on the stream of
// that request; what it said unasked comes on the session's own (GET), or where a client of a version without sessions listens for it
// (subscriptions/listen). A stream goes on behind an event that the client names (Last-Event-ID). It refuses requests that a browser
// sends for a page of another host. When ctx is done every session ends. Of o count Reveal and Say.
func (s *Served) Handler(ctx context.Context, o *ServeOptions) http.Handler {
	h := newWebServer(ctx, s, o)
	h.shared = &webSession{session: newSession(ctx, s, o)}
	context.AfterFunc(ctx, h.shared.rest)
	return h
}

// SSEHandler answers lenient clients over HTTP+SSE, the transport of 2024-11-05: everything comes on the stream of a GET, whose first
// event names the URL to post to. The session ends with that stream. Else it is as Handler.
func (s *Served) SSEHandler(ctx context.Context, o *ServeOptions) http.Handler {
	return newWebServer(ctx, s, o)
}

// A webServer is a server over either transport.
type webServer struct {
	ctx    context.Context
	s      *Served
	o      *ServeOptions
	shared *webSession // of clients without a session; nil over HTTP+SSE, where there are none

	mu  sync.Mutex
	all map[string]*webSession // by id
}

func newWebServer(ctx context.Context, s *Served, o *ServeOptions) *webServer {
	return &webServer{ctx: ctx, s: s, o: o, all: make(map[string]*webSession)}
}

// ServeHTTP implements http.Handler.
func (h *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, sse, allowed := r.Header.Get(sessionHeader), h.shared == nil, http.MethodPost
	if sse {
		id, allowed = r.URL.Query().Get(sessionQuery), "GET, POST"
	}
	v := h.get(id)
	switch {
	case foreign(r):
		http.Error(w, "this origin may not speak to the server", http.StatusForbidden)
	case r.Method == http.MethodPost:
		h.post(w, r, v)
	case sse && r.Method == http.MethodGet:
		h.stream(w, r)
	case sse || id == "" || r.Method != http.MethodDelete && r.Method != http.MethodGet:
		w.Header().Set("Allow", allowed)
		http.Error(w, "there is no session: use "+allowed, http.StatusMethodNotAllowed)
	case v == nil:
		http.Error(w, noSession, http.StatusNotFound)
	case r.Method == http.MethodDelete:
		v.leave()
		w.WriteHeader(http.StatusNoContent)
	default:
		v.listen(w, r)
	}
}

// noSession is the error of a session that there is not, or no more.
const noSession = "no such session"

// listen gives a client what is said unasked, or what comes behind an event that it names.
func (v *webSession) listen(w http.ResponseWriter, r *http.Request) {
	event := r.Header.Get(lastEvent)
	if event == "" {
		seen, ok := v.own.enter(false)
		if !ok {
			http.Error(w, "another connection has the session's stream", http.StatusConflict)
			return
		}
		v.own.serve(w, r, v.gone, seen)
		return
	}
	l, seen, err := v.streamOf(event)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.enter(true)
	l.serve(w, r, v.gone, seen)
}

// post takes what a client sends, v its session; nil where it names none that goes on.
func (h *webServer) post(w http.ResponseWriter, r *http.Request, v *webSession) {
	if h.shared == nil && v == nil {
		http.Error(w, noSession, http.StatusNotFound)
		return
	}
	msgs, ok := readPost(w, r)
	if !ok {
		return
	}
	if h.shared == nil { // the answers come on the stream
		w.WriteHeader(http.StatusAccepted)
		v.messages(v.gone, msgs, v.unasked)
		return
	}
	if v, ok = h.clientOf(w, r, msgs, v); !ok {
		return
	}
	var requests []*Message
	for i := range msgs {
		if msgs[i].IsRequest() {
			requests = append(requests, &msgs[i])
		} else {
			v.tell(&msgs[i])
		}
	}
	switch {
	case len(requests) == 0:
		w.WriteHeader(http.StatusAccepted)
	case len(requests) == 1 && v.silent(requests[0]):
		v.answer(r.Context(), requests[0], func(b []byte) { writeJSON(w, statusFor(requests[0], b), b) })
	default:
		v.stream(w, r, requests)
	}
}

// readPost reads the body of a POST. Where it is none of messages, it has answered so.
func readPost(w http.ResponseWriter, r *http.Request) (msgs []Message, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxLine))
	if err != nil {
		status := http.StatusBadRequest
		if tooLong := new(http.MaxBytesError); errors.As(err, &tooLong) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the request cannot be read: "+err.Error(), status)
		return nil, false
	}
	msgs, _, err = Parse(body)
	if err != nil || len(msgs) == 0 {
		writeJSON(w, http.StatusBadRequest, errorWith([]byte("null"), codeParse, "no JSON-RPC message"))
		return nil, false
	}
	return msgs, true
}

// clientOf is the client of a request that names the session v, or a new one. Where it is none, that is answered.
func (h *webServer) clientOf(w http.ResponseWriter, r *http.Request, msgs []Message, v *webSession) (is *webSession, ok bool) {
	named, begins := r.Header.Get(sessionHeader) != "", msgs[0].Method == methodInitialize
	switch {
	case isModern(r, msgs), !named && !begins: // which have no sessions, whatever their headers say
		return h.shared, true
	case named && v == nil:
		http.Error(w, noSession, http.StatusNotFound)
	case !named:
		if v = h.open(w); v != nil {
			w.Header().Set(sessionHeader, v.id)
		}
	}
	return v, v != nil
}

// isModern reports whether a request is of a version without sessions.
func isModern(r *http.Request, msgs []Message) bool {
	return r.Header.Get(protocolHeader) >= firstModern || msgs[0].Method == methodDiscover || modernVersion(&msgs[0]) >= firstModern
}

// statusFor is the status of an answer. A client that looks for a version without sessions where there is none goes on with initialize.
func statusFor(m *Message, answer []byte) int {
	if m.Method != methodDiscover {
		return http.StatusOK
	}
	if msgs, _, err := Parse(answer); err == nil && len(msgs) == 1 && msgs[0].Error != nil {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func writeJSON(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_, _ = w.Write(b) // who does not read it has gone
}

// stream answers requests by a stream of events, each as it comes. Of a client that has a session the stream may go on in another
// connection, so what it asked for is worked on when it has left this one.
func (v *webSession) stream(w http.ResponseWriter, r *http.Request, requests []*Message) {
	ctx, l := r.Context(), new(eventLog)
	if v.own != nil {
		ctx, l = v.gone, v.begin()
	}
	v.work(func() {
		var all sync.WaitGroup
		for _, m := range requests {
			all.Go(func() { v.answer(ctx, m, l.put) })
		}
		all.Wait()
		l.end()
	})
	l.serve(w, r, v.gone, 0)
}

// sessionQuery names the session in the URL to which a client of HTTP+SSE posts.
const sessionQuery = "sessionId"

// stream is a session over HTTP+SSE.
func (h *webServer) stream(w http.ResponseWriter, r *http.Request) {
	v := h.open(w)
	if v == nil {
		return
	}
	defer v.leave()
	v.own.name, v.own.max = "", 0 // there is no going on with it, and its answers are not to be dropped
	seen, _ := v.own.enter(false)
	beginEvents(w)
	fmt.Fprintf(w, "event: endpoint\ndata: %s?%s=%s\n\n", r.URL.EscapedPath(), sessionQuery, v.id)
	v.own.serve(w, r, v.gone, seen)
}

// maxSessions bounds how many clients there are at once.
const maxSessions = 10000

// A webSession is a client over HTTP.
type webSession struct {
	*session
	id    string
	own   *eventLog // what is said unasked; nil, as what follows, for clients without a session
	leave func()    // ends the session

	streaming sync.Mutex // guards what follows
	last      int
	answers   []*eventLog // with the answers to a POST, oldest first
}

// open lets a client in; nil, which is answered so, where there are too many.
func (h *webServer) open(w http.ResponseWriter) *webSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil || len(h.all) >= maxSessions {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return nil
	}
	gone, leave := context.WithCancel(h.ctx)
	v := &webSession{session: newSession(gone, h.s, h.o), id: rand.Text(), own: &eventLog{name: "0", max: maxUnheard}, leave: leave}
	v.unasked = v.own.put
	h.all[v.id] = v
	context.AfterFunc(gone, func() {
		h.mu.Lock()
		delete(h.all, v.id)
		h.mu.Unlock()
		v.rest()
	})
	return v
}

// get is the session of an id; nil for none that goes on.
func (h *webServer) get(id string) *webSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.all[id]; v != nil && v.gone.Err() == nil {
		return v
	}
	return nil
}

// foreign reports whether a browser sends r for a page of another host. A page that has had its name lead to this host is told from one
// by the name that it has here: one of the loopback's listeners has no other than its own.
func foreign(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && isLoopback(local.String()) && !isLoopback(r.Host) {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host && !isLoopback(u.Host)
}

// isLoopback reports whether a host, with a port or without, is this one's loopback.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

const (
	// maxUnheard bounds how many messages wait for a client that does not listen to what is said unasked. The oldest are dropped.
	maxUnheard = 10000
	// keptEvents is how many events of a stream are kept once they were written: a connection that broke may have lost them.
	keptEvents = 100
	// keptBytes bounds the streams of a session that are kept although they have ended. The newest one is kept in any case.
	keptBytes = 32 << 20
)

// An eventLog is one stream of events of a client. What is put into it waits for the connection that takes it, and a connection that
// broke goes on with another (Last-Event-ID).
type eventLog struct {
	name string // of the stream, with which the ids of its events begin; "" gives them none
	max  int    // how many events wait; 0: all

	mu      sync.Mutex // guards what follows
	events  [][]byte
	first   int  // how many were before events[0], and are forgotten
	written int  // how many a connection has taken
	readers int  // connections
	ended   bool // nothing comes behind
	changed lane.Change
}

// put is the outlet of the stream. It never waits.
func (l *eventLog) put(message []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, message)
	if l.max > 0 && len(l.events) > l.max {
		l.forget(l.first + len(l.events) - l.max)
	}
	l.changed.Happened()
}

// end says that nothing more comes.
func (l *eventLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.changed.Happened()
}

// forget lets go of the first n events. l.mu is held.
func (l *eventLog) forget(n int) {
	if n <= l.first {
		return
	}
	l.events = append([][]byte(nil), l.events[n-l.first:]...)
	l.first = n
}

// take returns the events behind the first seen ones, and how many are before them; changed is nil where nothing comes any more.
func (l *eventLog) take(seen int) (events [][]byte, before int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written < seen {
		l.written = seen
		l.forget(seen - keptEvents)
	}
	before = min(max(seen, l.first), l.first+len(l.events))
	if events = l.events[before-l.first:]; len(events) == 0 && l.ended {
		return nil, before, nil
	}
	return events, before, l.changed.Next()
}

// size is how many bytes the stream holds; open reports whether more may come.
func (l *eventLog) size() (n int, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		n += len(e)
	}
	return n, !l.ended
}

// enter makes a connection one that takes what no other has taken, which of a stream one does at a time, or in another's place one that goes
// on where that was: it may not have noticed that it is broken. serve ends it.
func (l *eventLog) enter(inPlace bool) (seen int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers > 0 && !inPlace {
		return 0, false
	}
	l.readers++
	return l.written, true
}

func (l *eventLog) left() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers--
}

// serve writes the events behind the first seen ones, until the last has been written, the client leaves, or gone is done.
func (l *eventLog) serve(w http.ResponseWriter, r *http.Request, gone context.Context, seen int) {
	defer l.left()
	rc := beginEvents(w)
	for {
		events, before, changed := l.take(seen)
		for i, e := range events {
			seen = before + i + 1
			if l.name != "" {
				fmt.Fprintf(w, "id: %s-%d\n", l.name, seen)
			}
			if _, err := fmt.Fprintf(w, "event: message\ndata: %s\n\n", e); err != nil {
				return
			}
		}
		if rc.Flush() != nil || changed == nil {
			return
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-gone.Done():
			return
		}
	}
}

// beginEvents makes a response one of events.
func beginEvents(w http.ResponseWriter) *http.ResponseController {
	w.Header().Set("Content-Type", typeEvents)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no")
	return http.NewResponseController(w)
}

// begin begins the stream of a POST, which is its first reader, and forgets old ones.
func (v *webSession) begin() *eventLog {
	v.streaming.Lock()
	defer v.streaming.Unlock()
	kept := 0
	for i := len(v.answers) - 1; i >= 0; i-- {
		n, open := v.answers[i].size()
		if kept += n; kept > keptBytes && !open {
			v.answers = append(v.answers[:i:i], v.answers[i+1:]...)
		}
	}
	v.last++
	l := &eventLog{name: strconv.Itoa(v.last), readers: 1}
	v.answers = append(v.answers, l)
	return l
}

// errNoEvent is the error of an event id that the session does not know, or no more.
var errNoEvent = errors.New("no such event")

// streamOf is the stream of an event, and how many of its events there are up to that one.
func (v *webSession) streamOf(event string) (l *eventLog, seen int, err error) {
	name, number, _ := strings.Cut(event, "-")
	if seen, err = strconv.Atoi(number); err != nil || seen < 0 {
		return nil, 0, errNoEvent
	}
	v.streaming.Lock()
	defer v.streaming.Unlock()
	for _, l := range append([]*eventLog{v.own}, v.answers...) {
		if l.name == name {
			return l, seen, nil
		}
	}
	return nil, 0, errNoEvent
}
