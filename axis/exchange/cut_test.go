package exchange_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestUsageOfACutAnswer wants the usage of a stream that the program left when it had all of the text and not yet the end
// of the encoding.
func TestUsageOfACutAnswer(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "Deflate", "br", "zstd"} {
		t.Run(coding, func(t *testing.T) {
			g := newRig(t, exchange.TapOptions{})
			o := g.begin("https://a.example/x", `{"model":"m","messages":[]}`)
			parts := encode(t, coding, `{"usage":{"n":1}}`, "")
			g.answer(o, "the program ended the request", headers("Content-Encoding", coding), parts[0])
			call, ok := g.kinds()[0].(*tape.LLMCall)
			if !ok || string(call.Usage) != `{"n":1}` {
				t.Errorf("%+v, want the usage", g.kinds()[0])
			}
		})
	}
}
