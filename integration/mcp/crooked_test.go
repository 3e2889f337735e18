//go:build mcp

package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A crooked is one way in which servers/crooked.mjs does wrong.
type crooked struct {
	name   string
	how    string
	prints string                 // what the client prints of it
	tape   func(k tape.Kind) bool // what must stand on the tape
}

// readable is the text of the server's answer.
const readable = "blühende 花 🌼"

var crookeds = []crooked{
	{"logs", "logs", readable, func(k tape.Kind) bool {
		x, ok := k.(*tape.MCPText)
		return ok && x.From == "server"
	}},
	{"bytes", "split", readable, func(k tape.Kind) bool {
		x, ok := k.(*tape.MCPJSONRPC)
		return ok && x.Method == "tools/call" && x.Error == ""
	}},
	{"20 MB", "big", `"length":20971520,"end":"89abcdef"`, func(k tape.Kind) bool {
		x, ok := k.(*tape.MCPJSONRPC)
		return ok && x.Method == "tools/call" && x.Response.Len > 20<<20
	}},
	{"20 MB for a client that takes 10", "big", "Connection closed", func(k tape.Kind) bool {
		x, ok := k.(*tape.MCPJSONRPC)
		return ok && x.Method == "tools/call"
	}},
	{"dies", "dies", "Connection closed", func(k tape.Kind) bool {
		x, ok := k.(*tape.MCPJSONRPC)
		return ok && x.Method == "tools/call" && x.Error == "server ended"
	}},
	{"never answers", "silent", "Request timed out", func(k tape.Kind) bool {
		x, ok := k.(*tape.MCPJSONRPC)
		return ok && x.Method == "tools/call" && x.Error == "cancelled"
	}},
	{"unknown version", "version", "protocol version is not supported: 1999-01-01", func(k tape.Kind) bool {
		x, ok := k.(*tape.MCPOpen)
		return ok && x.Protocol == "1999-01-01"
	}},
}

// TestCrookedServers has servers do what they should not: the program sees it, the tape has it, and a replay, the server gone, does the
// same, which comes to its end.
func TestCrookedServers(t *testing.T) {
	for _, c := range crookeds {
		t.Run(c.name, func(t *testing.T) {
			run.Once(t, func(t *testing.T, b *run.Box) {
				s := newStage(t, b)
				res := s.Record(nil, s.argv(s.crooked(&c))...)
				if res.Status != 0 || !strings.Contains(res.Stdout, c.prints) {
					t.Fatalf("record: %v", res)
				}
				if res := s.Verify(); res.Status != 0 {
					t.Errorf("verify: %v", res)
				}
				if !s.holds(c.tape) {
					t.Error("the tape does not have it")
				}
				if err := os.Remove(filepath.Join(b.Home, "crooked.mjs")); err != nil {
					t.Fatal(err)
				}
				s.green(res)
			})
		})
	}
}

// crooked is a scene with a server that does wrong.
func (s *stage) crooked(c *crooked) *scene {
	s.t.Helper()
	text, err := os.ReadFile("servers/crooked.mjs")
	if err != nil {
		s.t.Fatal(err)
	}
	script := filepath.Join(s.Home, "crooked.mjs")
	s.WriteFile(script, string(text))
	look := step{Server: "crooked", Tool: "look", Size: c.how == "big", Fails: !strings.Contains(c.prints, `"length"`) && c.prints != readable}
	if c.how == "silent" {
		look.Timeout = 1000
	}
	at := server{Command: s.node, Args: []string{script, c.how}, Fails: c.how == "version"}
	if c.name == "20 MB" {
		at.Limit = 64 << 20
	}
	sc := &scene{Servers: map[string]server{"crooked": at}}
	if c.how != "version" {
		sc.Steps = []step{{Server: "crooked", Method: "tools/list"}, look}
	}
	return sc
}

// holds reports whether one of the recording's records is as wanted.
func (s *stage) holds(wanted func(k tape.Kind) bool) bool {
	s.t.Helper()
	tp, err := tape.Open(filepath.Join(s.Recording(), "run.tape"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer tp.Close()
	found := false
	for rec, err := range tp.Records() {
		if err != nil {
			s.t.Fatal(err)
		}
		found = found || wanted(rec.Kind)
	}
	return found
}
