package mcp_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// TestSocketsOfTheNext: what the next Classifier knows of WebSockets is known in front of it.
func TestSocketsOfTheNext(t *testing.T) {
	r := &exchange.Request{Method: "GET", URL: "wss://api.openai.com/v1/responses"}
	if mcp.NewClassifier(llm.NewClassifier(nil), nil).Sockets(r) == nil {
		t.Error("the turns of Responses are not followed")
	}
}
