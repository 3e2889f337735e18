package websock

import (
	"context"
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
			if err := s.ws.Write(context.Background(), s.kind, b); err != nil {
				return
			}
		}
	})
	wstest.Run(t, wstest.Server{Addr: url}, os.Getenv("TAPEDECK_LONG") != "")
}
