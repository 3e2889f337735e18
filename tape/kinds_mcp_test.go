package tape_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestMCPServer(t *testing.T) {
	for name, want := range map[string]string{
		"files": "files", "files#2": "files", "files#12": "files", "c#": "c#", "c#x": "c#x", "#2": "#2", "c#x#2": "c#x", "": "",
	} {
		if got := tape.MCPServer(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestIsCall(t *testing.T) {
	for _, tt := range []struct {
		from, method string
		want         bool
	}{
		{"", "tools/call", true}, {"client", "tools/list", true}, {"server", "sampling/createMessage", false},
		{"", "initialize", false}, {"", "server/discover", false}, {"", "ping", false}, {"", "notifications/initialized", false},
	} {
		if got := (&tape.MCPJSONRPC{From: tt.from, Method: tt.method}).IsCall(); got != tt.want {
			t.Errorf("%s %s: %v", tt.from, tt.method, got)
		}
	}
}
