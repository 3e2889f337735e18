package websock

import (
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock/wstest"
)

// TestAutobahn holds an echo to the cases of the Autobahn suite, binary messages too.
func TestAutobahn(t *testing.T) {
	url := serve(t, &Options{binary: true, Limit: 1 << 20}, func(s *Stream) {
		for {
			b, _, err := s.Read()
			if err != nil {
				hangUp(s, err)
				return
			}
			if err := s.send(s.kind, b, false); err != nil {
				return
			}
		}
	})
	wstest.Run(t, wstest.Server{Addr: url}, os.Getenv("TAPEDECK_LONG") != "")
}
