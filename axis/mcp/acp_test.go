package mcp_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	acpInit    = `> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	acpInitIs  = `< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"scribe","version":"1"}}}`
	acpPrompt  = `> {"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`
	acpUpdate  = `< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`
	acpRead    = `< {"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"path":"/a"}}`
	acpReadIs  = `> {"jsonrpc":"2.0","id":0,"result":{"content":"a"}}`
	acpCancel  = `> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`
	acpStopped = `< {"jsonrpc":"2.0","id":1,"result":{"stopReason":"cancelled"}}`
)

// An agent is recorded under its own name, and what it says waits for what its client had said: for responses, and for a cancellation.
func TestACP(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := recorded(t, acpInit, acpInitIs, acpPrompt, acpUpdate, acpRead, acpReadIs, acpUpdate, acpCancel, acpStopped)
		for _, r := range m.records() {
			if k, ok := r.Kind.(*tape.MCPOpen); ok && (k.Server != "scribe" || k.Protocol != "acp 1") {
				t.Errorf("it is recorded as %s, %s", k.Server, k.Protocol)
			}
			if k, ok := r.Kind.(*tape.MCPJSONRPC); ok && k.IsNotification() != strings.HasPrefix(k.Method, "session/") && k.Method != "session/prompt" {
				t.Errorf("%s waits for an answer: %t", k.Method, !k.IsNotification())
			}
		}
		b := m.book(nil)
		c := converse(t, spawned(t, b), mcp.ServeOptions{})
		c.say(said(acpInit))
		c.hears(said(acpInitIs))
		c.say(as("7", acpPrompt))
		c.hears(said(acpUpdate), said(acpRead))
		time.Sleep(time.Second)
		c.hearsNothing()
		c.say(said(acpReadIs))
		c.hears(said(acpUpdate))
		time.Sleep(time.Second) // an answer to somebody who waits is held up for two
		c.hearsNothing()
		c.say(said(acpCancel))
		c.hears(as("7", acpStopped))
		c.end()
		if n := len(b.Unasked()) + len(b.Refused()); n > 0 {
			t.Errorf("%d calls are unasked or refused", n)
		}
		if _, err := b.Named(""); err == nil {
			t.Errorf("a client of MCP is answered by an agent: %v", err)
		}
	})
}
