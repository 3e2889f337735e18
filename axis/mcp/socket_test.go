package mcp_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// unsocketed is a Classifier that knows nothing of sockets.
type unsocketed struct{ exchange.Classifier }

// TestSocketsOfTheNext: what the next Classifier knows of WebSockets is known in front of it.
func TestSocketsOfTheNext(t *testing.T) {
	r := &exchange.Request{Method: "GET", URL: "wss://api.openai.com/v1/responses"}
	next := llm.NewClassifier(nil)
	if mcp.NewClassifier(next, nil).Sockets(r) == nil {
		t.Error("the turns of Responses are not followed")
	}
	if got := mcp.NewClassifier(unsocketed{next}, nil).Sockets(r); got != nil {
		t.Errorf("followed by %T", got)
	}
}
