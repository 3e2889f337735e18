package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
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
// sends for a page of another host. When ctx is done every session ends. Of o count Live, Reveal and Say.
func (s *Served) Handler(ctx context.Context, o *ServeOptions) http.Handler {
	gone, leave := context.WithCancel(ctx)
	h := &streamable{sessions: newSessions(ctx, s, o), shared: &session{visit: newVisit(gone, s, o), leave: leave}}
	context.AfterFunc(ctx, h.shared.close)
	return ownPages(h)
}

// A streamable is a server over Streamable HTTP.
type streamable struct {
	*sessions
	shared *session // of those without one
}

// ServeHTTP implements http.Handler.
func (h *streamable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	switch {
	case r.Method == http.MethodPost:
		h.post(w, r)
	case id == "" || r.Method != http.MethodDelete && r.Method != http.MethodGet:
		w.Header().Set("Allow", "POST")
		http.Error(w, "there is no session: use POST", http.StatusMethodNotAllowed)
	case h.get(id) == nil:
		http.Error(w, noSession, http.StatusNotFound)
	case r.Method == http.MethodDelete:
		h.drop(id)
		w.WriteHeader(http.StatusNoContent)
	default:
		h.get(id).listen(w, r)
	}
}

// noSession is the error of a session that there is not, or no more.
const noSession = "no such session"

// listen gives a client what is said unasked, or what comes behind an event that it names.
func (v *session) listen(w http.ResponseWriter, r *http.Request) {
	event := r.Header.Get(lastEvent)
	if event == "" {
		seen, ok := v.streams.own.listen()
		if !ok {
			http.Error(w, "another connection has the session's stream", http.StatusConflict)
			return
		}
		v.streams.own.serve(w, r, v.gone, seen)
		return
	}
	l, seen, err := v.streams.find(event)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.resume()
	l.serve(w, r, v.gone, seen)
}

func (h *streamable) post(w http.ResponseWriter, r *http.Request) {
	msgs, batch, ok := readPost(w, r)
	if !ok {
		return
	}
	v, status := h.visitOf(w, r, msgs)
	if v == nil {
		http.Error(w, http.StatusText(status), status)
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
	case len(requests) == 1 && !batch && v.silent(requests[0]):
		_ = v.answer(r.Context(), requests[0], func(b []byte) error { return writeJSON(w, statusFor(requests[0], b), b) })
	default:
		v.stream(w, r, requests)
	}
}

// readPost reads the body of a POST. Where it is none of messages, it has answered so.
func readPost(w http.ResponseWriter, r *http.Request) (msgs []Message, batch, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxLine))
	if err != nil {
		status := http.StatusBadRequest
		if tooLong := new(http.MaxBytesError); errors.As(err, &tooLong) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the request cannot be read: "+err.Error(), status)
		return nil, false, false
	}
	msgs, batch, err = Parse(body)
	if err != nil || len(msgs) == 0 {
		writeJSON(w, http.StatusBadRequest, errorWith([]byte("null"), codeParse, "no JSON-RPC message"))
		return nil, false, false
	}
	return msgs, batch, true
}

// visitOf finds the client of a request, or lets a new one in; nil with the status for none.
func (h *streamable) visitOf(w http.ResponseWriter, r *http.Request, msgs []Message) (*session, int) {
	id := r.Header.Get(sessionHeader)
	switch {
	case isModern(r, msgs): // which has no sessions, whatever its headers say
		return h.shared, 0
	case id != "":
		return h.get(id), http.StatusNotFound
	case msgs[0].Method != methodInitialize:
		return h.shared, 0
	}
	v := h.open()
	if v == nil {
		return nil, http.StatusServiceUnavailable
	}
	w.Header().Set(sessionHeader, v.id)
	return v, 0
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

func writeJSON(w http.ResponseWriter, status int, b []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err := w.Write(b)
	return err
}

// stream answers requests by a stream of events, each as it comes. Of a client that has a session the stream may go on in another
// connection, so what it asked for is worked on when it has left this one.
func (v *session) stream(w http.ResponseWriter, r *http.Request, requests []*Message) {
	ctx, l := r.Context(), newEventLog("")
	if v.streams != nil {
		ctx, l = v.gone, v.streams.open()
	}
	v.work(func() {
		var all sync.WaitGroup
		for _, m := range requests {
			all.Go(func() { _ = v.answer(ctx, m, l.put) })
		}
		all.Wait()
		l.end()
	})
	l.serve(w, r, v.gone, 0)
}
