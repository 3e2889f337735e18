package fidelity

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An asking is what a program asked somebody for, as a report names it.
type asking struct {
	method, url string
	subject     string // of a call of a tool: which
	digest      cas.Digest
	failure     string // why nothing answered
}

// askedBy returns what a record asks for; it is not ok for one that asks for nothing: a notification, a request of a server.
func askedBy(k tape.Kind) (*asking, bool) {
	if ex := tape.ExchangeOf(k); ex != nil {
		return &asking{method: ex.Method, url: ex.URL, digest: ex.RequestDigest, failure: ex.Error}, true
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
		return &asking{k.Method, laneMCP + k.Server, subjectOfCall(k), digest, k.Error}, true
	case *tape.WSOpen:
		return &asking{method: "GET", url: k.URL}, true
	case *tape.WSMessage:
		if why := refusedMessage(k); why != "" {
			return &asking{method: "GET", subject: "a message", digest: hashOf(k.Payload), failure: why}, true
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

// askedIn is askedBy of a record in a lane: of a message of a WebSocket the URL is that of the lane's beginning.
func (c *laneCompare) askedIn(lane string, k tape.Kind) (*asking, bool) {
	a, ok := askedBy(k)
	if ok && a.url == "" {
		a.url = c.urls[lane]
	}
	return a, ok
}

// String names the request as people do: GET https://host/path, tools/call read_file of files.
func (a *asking) String() string {
	if server, ok := strings.CutPrefix(a.url, laneMCP); ok {
		return spaced(a.method, a.subject, "of", server)
	}
	if a.subject != "" {
		return a.subject + " to " + a.url
	}
	return a.method + " " + a.url
}

func (a *asking) ref(seq *uint64, lane string) RequestRef {
	return RequestRef{Seq: seq, Method: a.method, URL: a.url, Lane: lane}
}

// refusedOnReplay reports whether nothing on the tape answered a request of a replay.
func refusedOnReplay(k tape.Kind) bool {
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
