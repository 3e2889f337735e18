package main

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// model says what a program last said to a model that it asked past any provider, as on a testbench, and below it what came. Of a call
// whose payloads are not there, or are not in our form, it names the request by its digest.
func (s sayer) model(k *tape.LLMCall) saying {
	head := strings.TrimLeft(strings.Join(strings.Fields(k.Provider+" "+k.Endpoint+" "+k.Model), " ")+" ", " ")
	digest := saying{lines: []string{head + "request " + k.RequestDigest.Short()}}
	c, err := fixture.ReadCall(k, s.store)
	if err != nil {
		return digest
	}
	out := digest
	if asked := c.LastUser(); asked != "" {
		out.lines = []string{sent + head + mcptext.Words(asked, max(s.max-len([]rune(sent+head)), minSaid/2))}
	}
	came := s.answer(c.Answer)
	if ms := c.Answer.Delay().Milliseconds(); ms > 0 {
		came += " " + took(ms)
	}
	out.lines, out.failed = append(out.lines, received+came), c.Answer.Err != nil
	return out
}

// answer says what a model answered: its text, then the tools that it calls, as far as there is room.
func (s sayer) answer(a *fixture.Answer) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	room := max(s.max-len([]rune(received))-len(" 99999 ms"), minSaid)
	said := ""
	if a.Response.Text != "" || len(a.Response.ToolCalls) == 0 {
		said = mcptext.Words(a.Response.Text, room)
	}
	for i := range a.Response.ToolCalls {
		left := room - len([]rune(said))
		if left < minSaid/2 {
			return said + " …"
		}
		said = strings.TrimLeft(said+" "+toolCall(&a.Response.ToolCalls[i], left), " ")
	}
	return said
}

// toolCall says what a model wants done, as a request to a tool server shows.
func toolCall(c *fixture.ToolCall, room int) string {
	request, err := json.Marshal(map[string]*fixture.ToolCall{"params": c})
	if err != nil {
		return c.Name
	}
	return mcptext.Request("tools/call", request, room)
}
