package llm_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const liveURL = "wss://generativelanguage.googleapis.com/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=x"

const liveSetup = `>{"setup":{"model":"models/gemini-live-2.5-flash","system_instruction":{"parts":[{"text":"Be brief."}]},` +
	`"tools":[{"functionDeclarations":[{"name":"write"}]}],"sessionResumption":{"handle":"%"}}}`

// liveRun plays a call of a tool and its result, as one run names things. It returns the keys and the last request.
func liveRun(t *testing.T, run string) (keys []exchange.Key, last *exchange.Request) {
	t.Helper()
	w := opened(t, liveURL)
	w.passes(strings.Replace(liveSetup, "%", run, 1), `{"setupComplete":{}}`,
		`>{"clientContent":{"turns":[{"role":"user","parts":[{"text":"write it"}]}]}}`)
	turn, id := w.asks(`{"client_content":{"turns":[{"role":"user","parts":[{"text":"now"}]}],"turn_complete":true}}`)
	keys = append(keys, id.Key)
	w.hears(turn.Of, `{"serverContent":{"modelTurn":{"parts":[{"text":"I'll "}]}}}`, `{"serverContent":{"modelTurn":{"parts":[{"text":"write."}]}}}`,
		`{"toolCall":{"functionCalls":[{"id":"c1","name":"write","args":{}},{"id":"c2","name":"write","args":{}}]}}`)
	w.passes(`{"usageMetadata":{"totalTokenCount":3}}`, `{"sessionResumptionUpdate":{"newHandle":"`+run+`"}}`,
		`>{"toolResponse":{"functionResponses":[{"id":"c1","name":"write","response":{"output":"ok"}}]}}`)
	turn, id = w.asks(`{"toolResponse":{"functionResponses":[{"id":"c2","name":"write","response":{"output":"ok"}}]}}`)
	keys = append(keys, id.Key)
	answer := []string{
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"` + strings.Repeat("QUJD", 300) + `"}}]}}}`,
		`{"serverContent":{"outputTranscription":{"text":"Done "}}}`, `{"serverContent":{"outputTranscription":{"text":"it."}}}`,
		`{"serverContent":{"generationComplete":true}}`,
		`{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":7,"responseTokenCount":5,"totalTokenCount":12}}`,
	}
	w.hears(turn.Of, answer...)
	if got := string(id.Usage("", []byte(strings.Join(answer, "\n")))); !strings.Contains(got, `"responseTokenCount":5`) {
		t.Errorf("used %s", got)
	}
	said, err := new(llm.Listener).Read(&tape.LLMCall{Provider: "gemini", Endpoint: "BidiGenerateContent", Exchange: tape.Exchange{Status: 101}},
		turn.Request.Body, []byte(strings.Join(answer, "\n")))
	if err != nil || said.System != "Be brief." || !said.Tools || said.Messages != 5 || said.Answer == nil || !said.Answer.Whole ||
		string(said.Answer.Message.Content) != `"Done it."` || len(said.New[2].Calls) != 2 || said.New[2].Texts[0] != "I'll write." {
		t.Errorf("said %+v, %v", said, err)
	}
	next, id := w.asks(`{"realtimeInput":{"text":"more"}}`)
	keys = append(keys, id.Key)
	return keys, next.Request
}

// TestLiveTurns holds the turns of two runs to equal keys.
func TestLiveTurns(t *testing.T) {
	first, last := liveRun(t, "one")
	second, _ := liveRun(t, "two")
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("turn %d: %+v, then %+v", i, first[i], second[i])
		}
	}
	if k := first[0]; k.Provider != "gemini" || k.Endpoint != "BidiGenerateContent" || k.Model != "gemini-live-2.5-flash" {
		t.Errorf("key %+v", k)
	}
	if body := string(last.Body); !strings.Contains(body, `"text":"Done it."`) || strings.Contains(body, "QUJDQUJD") || !strings.Contains(body, `"text":"more"`) {
		t.Errorf("folded to %s", body)
	}
}

// TestLiveServerBegins: where the server hears that the user has ended, its answer has no message of the program's.
func TestLiveServerBegins(t *testing.T) {
	w := opened(t, liveURL)
	w.passes(strings.Replace(liveSetup, "%", "", 1), `>{"realtimeInput":{"audio":{"mimeType":"audio/pcm","data":"AAAA"}}}`,
		`{"voiceActivity":{}}`, `{"serverContent":{"turnComplete":true}}`)
	heard := func(m string) exchange.Turn { return w.turns.Server(exchange.BinaryMessage, []byte(m)) }
	own := heard(`{"serverContent":{"modelTurn":{"parts":[{"text":"yes"}]}}}`)
	if own.Part != exchange.TurnBegins || !strings.Contains(string(own.Request.Body), " of 4 bytes") {
		t.Fatalf("the first words are %+v", own)
	}
	w.passes(`>{"realtimeInput":{"text":"no, wait"}}`) // it interrupts
	w.hears(own.Of, `{"serverContent":{"interrupted":true}}`, `{"serverContent":{"turnComplete":true}}`)
	whole := heard(`{"serverContent":{"modelTurn":{"parts":[{"text":"?"}]},"turnComplete":true}}`)
	if whole.Part != exchange.TurnWhole || !strings.Contains(string(whole.Request.Body), "no, wait") ||
		!strings.Contains(string(whole.Request.Body), `"yes"`) {
		t.Errorf("an answer in one message is %+v: %s", whole, whole.Request.Body)
	}
	turn, _ := w.asks(`{"realtimeInput":{"activityEnd":{}}}`)
	if turn.Refuse != nil {
		t.Error("the protocol has no error of a turn")
	}
	w.passes(`>[]`, `>{"clientContent":`, `>{"contextUpdate":{}}`)
}
