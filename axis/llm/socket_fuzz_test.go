package llm_test

import (
	"bytes"
	"net/http"
	"reflect"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// FuzzTurns plays any messages, one a line, the program's behind ">", to the protocols. What is said of them has to hold together, and
// is the same each time; what begins a turn is a call of a model that can be read.
func FuzzTurns(f *testing.F) {
	urls := []string{responsesSocketURL, realtimeURL, liveURL}
	for i, talk := range []string{
		`>{"type":"response.create","model":"m","input":"hi"}
{"type":"response.created","response":{"id":"r"}}
{"type":"response.output_item.done","item":{"type":"message"}}
>{"type":"response.steer","input":[{"role":"user","content":"x"}]}
{"type":"response.completed","response":{"id":"r","output":[{}]}}
{"type":"response.created","response":{"id":"s"}}
{"type":"error"}
>{"type":"response.create","stream_id":"a","previous_response_id":"r","input":[1],"input":[2],"tapedeck":1}
{"type":"response.created","stream_id":"a"}`,
		`>{"type":"session.update","session":{"instructions":{},"input":3,"audio":{"a":1}}}
>{"type":"conversation.item.create","item":{"type":"message","content":[{"audio":"AAAA"}]}}
>{"type":"response.create","response":{"input":[null],"conversation":"none"}}
{"type":"response.created","response":{"id":"r"}}
{"type":"response.done","response":{"id":"r","output":[7]}}
>{"type":"input_audio_buffer.append","audio":"AA"}
{"type":"input_audio_buffer.committed","item_id":"i"}
{"type":"response.created","response":{"id":"r"}}`,
		`>{"setup":{"model":"m","contents":1}}
>{"clientContent":{"turns":[{"role":"user"}],"turnComplete":true}}
{"serverContent":{"modelTurn":{"parts":[{"text":"a"},{"text":"b"},3]}}}
{"toolCall":{"functionCalls":[{"id":"c"}]}}
>{"toolResponse":{"functionResponses":[{"id":"c"}]}}
{"serverContent":{"turnComplete":true}}
{"serverContent":{"modelTurn":{"parts":[]},"turnComplete":true}}`,
	} {
		f.Add(i, []byte(talk))
	}
	f.Fuzz(func(t *testing.T, i int, talk []byte) {
		c := llm.NewClassifier(nil)
		opened := &exchange.Request{Method: http.MethodGet, URL: urls[(i%len(urls)+len(urls))%len(urls)]}
		turns, again := c.Sockets(opened), c.Sockets(opened)
		open := make(map[uint64]bool)
		for line := range bytes.Lines(talk) {
			turn := pass(turns, line)
			if twin := pass(again, line); turn.Part != twin.Part || turn.Of != twin.Of || !reflect.DeepEqual(turn.Request, twin.Request) {
				t.Fatalf("%q is %+v, then %+v", line, turn, twin)
			}
			holdsTurn(t, c, open, line, turn)
		}
	})
}

// pass passes a message in memory that is overwritten behind it.
func pass(turns exchange.Turns, line []byte) (turn exchange.Turn) {
	message, sent := bytes.CutPrefix(bytes.Clone(line), []byte(">"))
	if sent {
		turn = turns.Client(exchange.TextMessage, message)
	} else {
		turn = turns.Server(exchange.TextMessage, message)
	}
	for i := range message {
		message[i] = '#'
	}
	return turn
}

// holdsTurn holds what is said of a message to what was said before.
func holdsTurn(t *testing.T, c *llm.Classifier, open map[uint64]bool, line []byte, turn exchange.Turn) {
	t.Helper()
	sent := bytes.HasPrefix(line, []byte(">"))
	begins := turn.Part == exchange.TurnBegins || turn.Part == exchange.TurnWhole
	switch {
	case turn.Part == exchange.TurnOutside:
		return
	case begins && (turn.Request == nil || turn.Of == 0 || open[turn.Of]), !begins && (sent || !open[turn.Of]):
		t.Fatalf("%q is %+v, open are %v", line, turn, open)
	}
	open[turn.Of] = turn.Part == exchange.TurnBegins || turn.Part == exchange.TurnWithin
	if !begins {
		return
	}
	id, err := c.Classify(turn.Request)
	if err != nil {
		t.Fatalf("%q asks for what cannot be read: %v", line, err)
	}
	if id.Key.Kind == exchange.LLM {
		call := &tape.LLMCall{Provider: id.Key.Provider, Endpoint: id.Key.Endpoint, Exchange: tape.Exchange{Status: 101}}
		_, _ = llm.ReadCall(call, turn.Request.Body, nil) // it must not panic
	}
}
