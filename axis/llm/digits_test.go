package llm_test

import (
	"fmt"
	"testing"
)

// TestDigitsOfNumbersCount: two requests that differ in the last digit of a number which no double holds are two, wherever
// the number stands; two spellings of one double are one.
func TestDigitsOfNumbersCount(t *testing.T) {
	for _, tt := range []struct{ name, url, body string }{
		{"plain HTTP", "https://api.example.com/v1/orders", `{"order":%s}`},
		{"a tool's input", anthropicURL, `{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"id":%s}}]}]}`},
		{"a parameter", chatURL, `{"model":"m","messages":[{"role":"user","content":"hi"}],"seed":%s}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []struct {
				a, b string
				same bool
			}{
				{"1234567890123456788", "1234567890123456789", false},
				{"9007199254740992", "9007199254740993", false},
				{"1234567890123456768", "1234567890123456800", false}, // of one double
				{"0.12345678901234567891", "0.12345678901234567892", false},
				{"1234567890123456789", "1234567890123456789", true},
				{"7", "7.0", true},
				{"1000000000000000000000", "1e21", true},
			} {
				a, b := classify(t, tt.url, fmt.Sprintf(tt.body, n.a)), classify(t, tt.url, fmt.Sprintf(tt.body, n.b))
				if (a.Key == b.Key) != n.same {
					t.Errorf("%s and %s are one request: %v, want %v", n.a, n.b, !n.same, n.same)
				}
			}
		})
	}
}

// TestNumberIsNoName: a number in the place of a name is none, however many digits it has.
func TestNumberIsNoName(t *testing.T) {
	id := classify(t, chatURL, `{"model":1234567890123456789,"messages":[{"role":"user","content":"hi"}]}`)
	if id.Key.Model != "" {
		t.Errorf("the model is named %q", id.Key.Model)
	}
}
