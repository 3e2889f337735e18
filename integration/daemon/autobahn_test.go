//go:build daemon

package daemon

import (
	"os"
	"os/exec"
	"testing"
)

// TestAutobahn holds the daemon to the cases of the Autobahn suite, over TCP and over its Unix socket.
func TestAutobahn(t *testing.T) {
	s := serve(t, "--no-auth", "--listen", "127.0.0.1:0", "--socket", "HOME/s")
	for name, addr := range map[string]string{"tcp": s.URL, "unix": "unix:" + s.Socket} {
		t.Run(name, func(t *testing.T) {
			cases := exec.Command("go", "test", "-count=1", "-run", "^TestAutobahn$", "github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock")
			cases.Env = append(os.Environ(), "TAPEDECK_WEBSOCKETS="+addr)
			if out, err := cases.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
