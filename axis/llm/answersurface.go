package llm

import (
	"bytes"
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
	whole, err := canonjson.Parse(body)
	if err == nil {
		numbers.answer(&whole)
		return whole.Append(nil)
	}
	out := make([]byte, 0, len(body))
	for line := range bytes.Lines(body) {
		text := bytes.TrimRight(line, "\r\n")
		data, field := bytes.CutPrefix(text, []byte("data:"))
		v, err := canonjson.Parse(data)
		switch {
		case bytes.HasPrefix(text, []byte(":")), string(text) == "event: ping",
			len(text) == 0 && (len(out) == 0 || bytes.HasSuffix(out, []byte("\n\n"))): // behind a ping
			continue
		case err != nil:
			out = append(append(out, text...), '\n')
			continue
		}
		if kind, _ := v.Get("type"); kind.Text() == "ping" {
			continue
		}
		numbers.answer(&v)
		if field {
			out = append(out, "data: "...)
		}
		out = append(v.Append(out), '\n')
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
