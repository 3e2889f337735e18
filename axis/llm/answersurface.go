package llm

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// What a provider makes up for every answer: names of the answer, of its items and calls, and when it was given; and what
// says nothing that another answer could be held against: seals, echoes, padding, how long it took.
var (
	madeUpIDs = []string{
		"id", "call_id", "generation_id", "item_id", "message_id", "request_id", "response_id", "responseId", "tool_call_id",
		"tool_use_id", "toolUseId",
	}
	madeUpTimes = []string{"completed_at", "created", "created_at", "createTime"}
	meaningless = []string{
		"encrypted_content", "obfuscation", "signature", "system_fingerprint", "thoughtSignature", "thought_signature",
		"total_duration", "load_duration", "prompt_eval_duration", "eval_duration",
	}
	modelsOwnWords = []string{"input", "args", "arguments", "parameters", "schema"} // objects in which any name may stand
)

// answerSurface returns what Classifier.AnswerSurface masks.
func answerSurface(body []byte) []byte {
	numbers := make(pairs)
	var out []byte
	for text := range answers(body) {
		v, err := canonjson.Parse(text)
		switch {
		case err != nil:
			out = append(append(out, text...), '\n')
		case member(&v, "type") != "ping":
			numbers.answer(&v)
			out = append(v.Append(out), '\n')
		}
	}
	if out == nil {
		return body
	}
	return out
}

// answer takes out of a value of an answer what says nothing. It edits a tree in place: its parser's caller alone holds it.
func (n pairs) answer(v *canonjson.Value) {
	each(v, n.answer)
	drop(v, meaningless...)
	for i := range v.Members {
		switch m := &v.Members[i]; {
		case slices.Contains(madeUpIDs, m.Key) && m.Value.Kind == canonjson.String:
			n.number(v, m.Key)
		case slices.Contains(madeUpTimes, m.Key) && (m.Value.Kind == canonjson.Number || m.Value.Kind == canonjson.String):
			m.Value = canonjson.Value{Kind: canonjson.String, Str: "#time"}
		case !slices.Contains(modelsOwnWords, m.Key) || m.Value.Kind != canonjson.Object:
			n.answer(&m.Value)
		}
	}
}
