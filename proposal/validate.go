package proposal

import (
	"encoding/json"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// validate says what keeps an action from being judged at all; "" is nothing.
func (r *run) validate(o *Outcome) (*policy.Parameters, string) {
	a := o.Action
	parameters, err := policy.ParseParameters(a.Parameters)
	if err != nil {
		o.Parameters = json.RawMessage("{}")
		return nil, "parameters: " + err.Error()
	}
	o.Parameters = parameters.Raw()
	if a.Type == ToolCall {
		if problem := r.validateCall(a, parameters); problem != "" {
			return nil, problem
		}
	}
	if a.Type != Assertion { // of which they are what it asserts
		for i := range a.Preconditions {
			if problem := a.Preconditions[i].holds(r.state); problem != "" {
				return nil, "precondition: " + problem
			}
		}
	}
	for _, dep := range a.StateDependencies {
		if !r.state.Exists(dep) && !r.ok[dep] {
			return nil, fmt.Sprintf("state dependency '%.100s' not found", dep)
		}
	}
	return parameters, ""
}

func (r *run) validateCall(a *Action, parameters *policy.Parameters) string {
	if a.Tool == "" {
		return "tool_call action has no tool specified"
	}
	tool, ok := r.tool(a.Tool)
	if !ok {
		return fmt.Sprintf("tool '%.200s' is not registered", a.Tool)
	}
	if tool.Schema == nil {
		return ""
	}
	return tool.Schema.Problem(a.Tool, parameters)
}

func (r *run) tool(name string) (*Tool, bool) {
	if r.Tools == nil {
		return nil, false
	}
	return r.Tools.Tool(name)
}
