package network

import (
	"net/http"
	"net/url"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// upgradeRequired is the type of the error that a request for a WebSocket gets where the tape holds none.
const upgradeRequired = "upgrade_required"

// replaySocket answers a request for a WebSocket from the tape.
//
// One that was answered 426, as older recorders did, which carried none, is so again: a client that is told anything else about it may not
// go on by HTTP. That is also what a request gets that is not on a tape without any WebSocket.
func (s *handler) replaySocket(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open) error {
	rec, ok := s.takeSocket(o)
	switch {
	case ok && rec.Socket != nil:
		return s.playSocket(w, r, o, rec)
	case ok:
		return s.relay(w, r, o, s.tape.recorded(r, o, rec))
	case s.tape.book.DeadHost(to.Host):
		return s.relay(w, r, o, dead(errDeadHost))
	case s.tape.book.Sockets():
		return s.relay(w, r, o, s.tape.refusal(r, req, o))
	}
	s.tape.unmatched(o)
	a := localAnswer(o.Identity(), http.StatusUpgradeRequired, upgradeRequired, "tapedeck: no WebSocket is on the tape; use HTTP")
	return s.relay(w, r, o, a)
}
