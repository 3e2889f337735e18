package mcp

import (
	"context"
	"fmt"
	"net/http"
)

// sessionQuery names the session in the URL to which a client of HTTP+SSE posts.
const sessionQuery = "sessionId"

// SSEHandler answers lenient clients over HTTP+SSE, the transport of 2024-11-05: everything comes on the stream of a GET, whose first
// event names the URL to post to. The session ends with that stream. Else it is as Handler.
func (s *Served) SSEHandler(ctx context.Context, o *ServeOptions) http.Handler {
	return ownPages(&sseServed{newSessions(ctx, s, o)})
}

type sseServed struct{ *sessions }

// ServeHTTP implements http.Handler.
func (h *sseServed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		h.listen(w, r)
	case http.MethodPost:
		h.post(w, r)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "GET is the stream, and its first event names the URL to POST to", http.StatusMethodNotAllowed)
	}
}

func (h *sseServed) listen(w http.ResponseWriter, r *http.Request) {
	v := h.open()
	if v == nil {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	defer h.drop(v.id)
	own := v.streams.own
	own.name, own.max = "", 0 // there is no going on with it, and its answers are not to be dropped
	seen, _ := own.listen()
	beginEvents(w)
	fmt.Fprintf(w, "event: endpoint\ndata: %s?%s=%s\n\n", r.URL.EscapedPath(), sessionQuery, v.id)
	own.serve(w, r, v.gone, seen)
}

func (h *sseServed) post(w http.ResponseWriter, r *http.Request) {
	v := h.get(r.URL.Query().Get(sessionQuery))
	if v == nil {
		http.Error(w, noSession, http.StatusNotFound)
		return
	}
	msgs, batch, ok := readPost(w, r)
	if !ok {
		return
	}
	w.WriteHeader(http.StatusAccepted)
	v.messages(v.gone, msgs, batch, v.unasked)
}
