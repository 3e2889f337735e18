package llm_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestBill(t *testing.T) {
	prices, err := llm.LoadPrices(strings.NewReader(`{"as_of":"2026-01-01","sources":[],"notes":[],
		"prices":[{"provider":"openai","models":["mine"],"input":1000,"output":3000}]}`))
	if err != nil {
		t.Fatal(err)
	}
	call := func(model string, in, out int) *tape.LLMCall {
		return &tape.LLMCall{
			Provider: "openai", Endpoint: "chat.completions", Model: model,
			Usage: json.RawMessage(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d}`, in, out)),
		}
	}
	b := llm.NewBill(prices)
	if usd, ok := b.Whole(); usd != 0 || !ok || b.AsOf() != "2026-01-01" {
		t.Errorf("an empty bill is %v, %t", usd, ok)
	}
	b.Add(&tape.ClockSleep{})
	b.Add(call("mine", 10, 2))
	b.Add(call("mine", 5, 1))
	if usd, ok := b.Whole(); !ok || math.Abs(usd-0.024) > 1e-9 || b.Calls != 2 || b.Usage.InputTokens != 15 || b.Usage.OutputTokens != 3 {
		t.Errorf("%+v, %v", b, usd)
	}
	b.Add(&tape.LLMCall{Provider: "openai", Endpoint: "responses.ws.warmup", Model: "mine"}) // which generated nothing
	if _, ok := b.Whole(); !ok || b.Calls != 2 {
		t.Errorf("with a warm-up: %+v", b)
	}
	b.Add(call("theirs", 1, 1))
	b.Add(call("theirs", 1, 1))
	b.Add(call("", 1, 1))
	b.Add(&tape.LLMCall{Provider: "openai", Model: "mine"}) // says nothing of what it used
	if _, ok := b.Whole(); ok || b.Calls != 6 || b.Counted != 5 || b.Priced != 2 || b.Nameless != 1 || strings.Join(b.Unpriced, " ") != "theirs" {
		t.Errorf("%+v", b)
	}
	for i := range 20 {
		b.Add(call(fmt.Sprint("theirs", i), 1, 1))
	}
	if len(b.Unpriced) != 10 {
		t.Errorf("%d models are named", len(b.Unpriced))
	}
	if llm.NewBill(nil).AsOf() != llm.DefaultPrices().AsOf {
		t.Error("no prices are not the default ones")
	}
}
