package derive

import (
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// CallsOf lists the tools that the model asked for in the record of a call, whose payloads are in store; none of any other record,
// and of one whose payloads are not there.
func CallsOf(rec *tape.Record, store cas.Store) []sessionlog.ToolCall {
	k, ok := rec.Kind.(*tape.LLMCall)
	if !ok || k.RequestPayload == nil || k.Response == nil || max(k.RequestPayload.Len, k.Response.Len) > llm.MaxSaid {
		return nil
	}
	request, err := k.RequestPayload.Bytes(store)
	if err != nil {
		return nil
	}
	response, err := k.Response.Bytes(store)
	if err != nil {
		return nil
	}
	said, err := llm.ReadCall(k, request, response)
	if err != nil || said.Answer == nil {
		return nil
	}
	return said.Answer.Message.ToolCalls
}
