package fidelity

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A request is what a program asked somebody for, as a report names it.
type request struct {
	method, url string
	subject     string // of a call of a tool: which
	digest      cas.Digest
	failure     string // why nothing answered
}

// requestOf returns what a record asks for; it is not ok for one that asks for nothing: a notification, a request of a server.
func requestOf(k tape.Kind) (*request, bool) {
	if ex := tape.ExchangeOf(k); ex != nil {
		return &request{method: ex.Method, url: ex.URL, digest: ex.RequestDigest, failure: ex.Error}, true
	}
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		if fromOf(k) != fromClient || k.IsNotification() {
			return nil, false
		}
		digest := k.ParamsDigest
		if digest.IsZero() {
			digest = k.RequestDigest
		}
		return &request{k.Method, laneMCP + k.Server, subjectOfCall(k), digest, k.Error}, true
	case *tape.WSOpen:
		return &request{method: "GET", url: k.URL}, true
	case *tape.WSMessage:
		if why := refusedMessage(k); why != "" {
			return &request{method: "GET", subject: "a message", digest: hashOf(k.Payload), failure: why}, true
		}
	}
	return nil, false
}

// refusedMessage is why nothing on the tape fits a message of a WebSocket; "" where something did.
func refusedMessage(k *tape.WSMessage) (why string) {
	if raw := tape.FieldValue(k.Extra, "refused"); raw != nil {
		_ = json.Unmarshal(raw, &why) // what is no text says nothing
	}
	return why
}

// requestIn is requestOf of a record in a lane: of a message of a WebSocket the URL is that of the lane's beginning.
func (c *comparison) requestIn(lane string, k tape.Kind) (*request, bool) {
	a, ok := requestOf(k)
	if ok && a.url == "" {
		a.url = c.urls[lane]
	}
	return a, ok
}

// String names the request as people do: GET https://host/path, tools/call read_file of files.
func (a *request) String() string {
	if server, ok := strings.CutPrefix(a.url, laneMCP); ok {
		return spaced(a.method, a.subject, "of", server)
	}
	if a.subject != "" {
		return a.subject + " to " + a.url
	}
	return a.method + " " + a.url
}

func (a *request) ref(seq *uint64, lane string) RequestRef {
	return RequestRef{Seq: seq, Method: a.method, URL: a.url, Lane: lane}
}

// isRefused reports whether nothing on the tape answered a request of a replay.
func isRefused(k tape.Kind) bool {
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		return refusedCall(k)
	case *tape.WSOpen:
		return k.Lane == laneUnmatched
	case *tape.WSMessage:
		return true // else it asks for nothing
	}
	ex := tape.ExchangeOf(k)
	return ex != nil && ex.Lane == laneUnmatched
}
