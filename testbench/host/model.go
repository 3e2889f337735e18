package host

import (
	"context"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

var modelFunctions = []*Function{
	{
		Name: "llm.complete", do: complete,
		Params: []Param{
			{Name: "messages", Type: "list of dicts"}, {Name: "system", Type: "string or list", Optional: true},
			{Name: "tools", Type: "list of dicts", Optional: true}, {Name: "tool_choice", Type: "string or dict", Optional: true},
			{Name: "thinking", Type: "dict", Optional: true}, {Name: "model", Type: "string", Optional: true},
		},
		Doc: "Calls a model. messages are dicts with role and content. An answer that is an error (a status 529, say) fails the call.",
		Result: "a dict: text; tool_calls, a list of dicts with id, name and arguments; usage, a dict with input_tokens and output_tokens; " +
			"stop_reason, a string or None",
		Example: `answer = llm.complete([{"role": "user", "content": "What failed?"}], system = "Be brief.")`,
	},
}

func complete(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	r := &fixture.Request{
		Messages: a.values[0], System: a.values[1], Tools: a.values[2], ToolChoice: a.values[3], Thinking: a.values[4], Model: a.textOr(5),
	}
	a.list(0) // is one
	answer, err := b.Model().Complete(ctx, r)
	if err != nil {
		return nil, err
	}
	return answerObject(answer)
}

func answerObject(r *fixture.Response) (any, error) {
	calls := make([]any, 0, len(r.ToolCalls))
	for _, c := range r.ToolCalls {
		arguments, err := argumentsOf(&c)
		if err != nil {
			return nil, err
		}
		calls = append(calls, Object{{"id", c.ID}, {"name", c.Name}, {"arguments", arguments}})
	}
	var reason any
	if r.StopReason != "" {
		reason = r.StopReason
	}
	usage := Object{{"input_tokens", r.Usage.InputTokens}, {"output_tokens", r.Usage.OutputTokens}}
	return Object{{"text", r.Text}, {"tool_calls", calls}, {"usage", usage}, {"stop_reason", reason}}, nil
}

func argumentsOf(c *fixture.ToolCall) (any, error) {
	if len(c.Arguments) == 0 {
		return Object{}, nil
	}
	v, err := Decode(c.Arguments)
	if err != nil {
		return nil, fmt.Errorf("llm.complete: the arguments of the tool %s: %w", c.Name, err)
	}
	return v, nil
}
