package llm_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// volatileBody is a request with a volatile fact in every part of it.
func volatileBody(uuid, tool, date string) string {
	return fmt.Sprintf(`{"model":"m","system":"Today is %s.","tools":[{"name":"t","description":"run %s"}],
		"messages":[{"role":"user","content":"session %s"},
		{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"t","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"ok"}]}]}`, date, uuid, uuid, tool, tool)
}

// TestVolatile sees volatile facts not matter, and each counted once. Ids that pair calls with results are numbered before
// any mask sees them.
func TestVolatile(t *testing.T) {
	m := masks.New(nil)
	c := llm.NewClassifier(m)
	ask := func(body string) *exchange.Identity {
		id, err := c.Classify(&exchange.Request{Method: http.MethodPost, URL: anthropicURL, Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a := ask(volatileBody("0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11", "toolu_01A09q90qw90lq917835lq9", "2026-11-21"))
	if used := m.Used(); used["uuid"] != 2 || used["id"] != 0 || used["date"] != 1 {
		t.Errorf("masks used: %v", used)
	}
	b := ask(volatileBody("7d0f8f61-1111-4222-8333-944455556666", "toolu_01Zz9q90qw90lq917835lq9", "2026-12-24"))
	if a.Key != b.Key || talkOf(a).Opening != talkOf(b).Opening || talkOf(a).Turns[2] != talkOf(b).Turns[2] {
		t.Errorf("%s\n%s", a.Surface, b.Surface)
	}
}

// TestSecretStillMatches sees a request that held a secret match itself under another key and with another secret, while
// which places hold the same secret still matters.
func TestSecretStillMatches(t *testing.T) {
	ask := func(key byte, first, second string) *exchange.Identity {
		s := scrub.New(scrub.Key{key}, &scrub.Options{Env: []string{"A_TOKEN=" + first, "B_TOKEN=" + second}})
		body := fmt.Sprintf(`{"model":"m","system":"use %s","messages":[{"role":"user","content":"%s"},
			{"role":"user","content":"%s"}]}`, first, first, second)
		clean, found := s.Bytes([]byte(body))
		if !found {
			t.Fatal("no secret was found")
		}
		return classify(t, anthropicURL, string(clean))
	}
	a := ask(1, "kT7w2Lk9Vb4Nm6Tr8Yp1", "zq7Xw2Lk9Vb4Nm6Tr8Yp")
	b := ask(2, "Pw4Rt6Yu8Io0As2Df4Gh", "Mn3Bv5Cx7Zl9Kj1Hg3Fd")
	if a.Key != b.Key || talkOf(a).Opening != talkOf(b).Opening {
		t.Errorf("%s\n%s", a.Surface, b.Surface)
	}
	if same := ask(1, "kT7w2Lk9Vb4Nm6Tr8Yp1", "kT7w2Lk9Vb4Nm6Tr8Yp1"); same.Key == a.Key {
		t.Error("one secret in two places reads like two")
	}
}
