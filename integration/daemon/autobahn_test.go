//go:build daemon

package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock/wstest"
)

// TestAutobahn holds the daemon to the cases of the Autobahn suite, over TCP and over its Unix socket. None of their messages is
// JSON, and each is answered so.
func TestAutobahn(t *testing.T) {
	s := serve(t, "--no-auth", "--listen", "127.0.0.1:0", "--socket", "HOME/s")
	for name, addr := range map[string]string{"tcp": s.URL, "unix": "unix:" + s.Socket} {
		t.Run(name, func(t *testing.T) {
			wstest.Run(t, wstest.Server{
				Addr: addr, NoBinary: true, Async: true,
				Answer: func(_, got string) bool {
					return strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`)
				},
			}, os.Getenv("TAPEDECK_LONG") != "")
		})
	}
}
