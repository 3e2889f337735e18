package llm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

// BenchmarkTurns follows what passes most: one delta of an answer, and one message that goes on from a long conversation.
func BenchmarkTurns(b *testing.B) {
	open := func() exchange.Turns {
		return llm.NewClassifier(nil).Sockets(&exchange.Request{Method: http.MethodGet, URL: responsesSocketURL})
	}
	b.Run("delta", func(b *testing.B) {
		turns := open()
		turns.Client(exchange.TextMessage, []byte(`{"type":"response.create","model":"m","input":"hi"}`))
		delta := []byte(`{"type":"response.output_text.delta","item_id":"msg_68f0c1","output_index":0,"content_index":0,"delta":"some words","sequence_number":7,"logprobs":[]}`)
		b.SetBytes(int64(len(delta)))
		b.ReportAllocs()
		for b.Loop() {
			turns.Server(exchange.TextMessage, delta)
		}
	})
	b.Run("going on", func(b *testing.B) {
		turns := open()
		long := strings.Repeat("a sentence that somebody said. ", 10000)
		turns.Client(exchange.TextMessage, []byte(`{"type":"response.create","model":"m","input":"`+long+`"}`))
		for _, m := range answered("r") {
			turns.Server(exchange.TextMessage, []byte(m))
		}
		b.SetBytes(int64(len(long)))
		b.ReportAllocs()
		for b.Loop() {
			turns.Client(exchange.TextMessage, []byte(`{"type":"response.create","model":"m","previous_response_id":"r","input":"go on"}`))
			turns.Server(exchange.TextMessage, []byte(`{"type":"error"}`))
		}
	})
}
