package scriptedllm

import (
	"encoding/json"
	"strings"
)

// stepMark begins a line of a prompt that says what one answer is.
const stepMark = "step: "

// A step is one answer as a prompt writes it down: a list of texts and of calls, which are [name, arguments].
type step []json.RawMessage

// stepOf returns the answer that the prompt's steps want next. ok is false where the prompt has none, or all were said.
//
// The prompt is the last message with steps; each answer of the model since then took one.
func stepOf(t *turn) (a answer, ok bool) {
	steps, since := stepsOf(t.messages)
	n := 0
	for i, m := range since {
		if m.model && (i == 0 || !since[i-1].model) { // one answer may be several of the history's messages
			n++
		}
	}
	if n >= len(steps) {
		return answer{}, false
	}
	return steps[n].answer(), true
}

// stepsOf finds the last message with steps and what came after it.
func stepsOf(messages []message) (steps []step, since []message) {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].model || len(messages[i].results) > 0 {
			continue
		}
		for line := range strings.Lines(messages[i].joined()) {
			var s step
			if text, found := strings.CutPrefix(line, stepMark); found && json.Unmarshal([]byte(text), &s) == nil {
				steps = append(steps, s)
			}
		}
		if steps != nil {
			return steps, messages[i+1:]
		}
	}
	return nil, nil
}

func (s step) answer() answer {
	var a answer
	for _, part := range s {
		var text string
		var c call
		if json.Unmarshal(part, &text) == nil {
			a.text += text
		} else if json.Unmarshal(part, &[]any{&c.name, &c.args}) == nil {
			a.calls = append(a.calls, c)
		}
	}
	return a
}
