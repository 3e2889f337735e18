package mcp_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A client leaves a server when it is told that its process is gone, which may be before anybody here has read that.
func TestServerWentFirst(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		gone bool // when the client's end is read
		end  mcp.Ended
		want string
	}{
		"by itself":          {true, mcp.Ended{Exited: true, ExitCode: 7}, "server ended"},
		"by a crash":         {true, mcp.Ended{Exited: true, ExitCode: 139, Signal: "SIGSEGV"}, "server ended"},
		"killed":             {true, mcp.Ended{Exited: true, ExitCode: 137, Signal: "SIGKILL"}, "client ended"},
		"nobody knows how":   {true, mcp.Ended{}, "client ended"},
		"after the client":   {false, mcp.Ended{Exited: true}, "client ended"},
		"well and by itself": {true, mcp.Ended{Exited: true}, "server ended"},
		"asked to by signal": {true, mcp.Ended{Exited: true, ExitCode: 143, Signal: "SIGTERM"}, "client ended"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			f := mcp.NewFed(r.log, nil)
			in, out := f.OnSockets(t)
			if _, err := f.From(mcp.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`+"\n")); err != nil {
				t.Fatal(err)
			}
			if tt.gone {
				in.Close()
				out.Close()
			}
			if _, err := f.End(mcp.Client); err != nil {
				t.Fatal(err)
			}
			if err := f.Conversation().End(tt.end); err != nil {
				t.Fatal(err)
			}
			for _, k := range r.records() {
				if k, ok := k.(*tape.MCPJSONRPC); ok && k.Error != tt.want {
					t.Errorf("the request's error is %q, want %q", k.Error, tt.want)
				}
			}
		})
	}
}
