package fidelity

import (
	"cmp"
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
		return refusedMessage(k) != ""
	}
	ex := tape.ExchangeOf(k)
	return ex != nil && ex.Lane == laneUnmatched
}

// What Error of an mcp_json_rpc says of a request that got no answer; anything else is why the recorder refused it. Where the
// asking side did not wait for the answer, whether it had come by then is a matter of moments.
const (
	mcpCancelled     = "cancelled"
	mcpClientEnded   = "client ended"
	mcpServerEnded   = "server ended"
	mcpRecorderEnded = "recorder ended"
	mcpAnswerLost    = "the answer was too long to be kept"
)

// refusedCall reports whether nothing on the tape answered a request of the client: the recorder did.
func refusedCall(k *tape.MCPJSONRPC) bool {
	switch k.Error {
	case "", mcpCancelled, mcpClientEnded, mcpServerEnded, mcpRecorderEnded, mcpAnswerLost:
		return false
	}
	return fromOf(k) == fromClient
}

// The sides of a conversation, as From holds them.
const (
	fromClient = "client"
	fromServer = "server"
	fromStderr = "stderr"
)

func fromOf(k *tape.MCPJSONRPC) string { return cmp.Or(k.From, fromClient) }
