package deck

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// TestServerEndsThatRace: what ended a process that stood for a server is no news where the server itself might have ended as recorded.
func TestServerEndsThatRace(t *testing.T) {
	var (
		left    mcp.Ended
		well    = mcp.Ended{Exited: true}
		failed  = mcp.Ended{Exited: true, ExitCode: 1}
		crashed = mcp.Ended{Exited: true, ExitCode: 139, Signal: "SIGSEGV"}
		asked   = mcp.Ended{Exited: true, ExitCode: 143, Signal: "SIGTERM"}
		killed  = mcp.Ended{Exited: true, ExitCode: 137, Signal: "SIGKILL"}
	)
	for _, tt := range []struct {
		name          string
		recorded, now mcp.Ended
		want          bool
	}{
		{"the program ended before both", left, left, true},
		{"the program ended before this one", well, left, true},
		{"a server that takes SIGTERM for its end", well, asked, true},
		{"one that fails for it", failed, asked, true},
		{"one that is killed for it", killed, asked, true},
		{"one that was left", left, asked, false},
		{"one that had failed is killed", failed, killed, true},
		{"one that had crashed is killed", crashed, killed, true},
		{"one that had ended well is killed", well, killed, false},
		{"one that was left is killed", left, killed, false},
		{"it executed something else", well, failed, false},
	} {
		if got := raced(tt.recorded, tt.now); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
