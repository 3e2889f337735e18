package proposal

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/policy"
)

var errNoKey = errors.New("key is required: expected parameters {\"key\": the state's key, …}")

// keyAndValue reads the parameters of a state_write or a state_read. No value is null.
func keyAndValue(parameters json.RawMessage) (key string, value json.RawMessage, err error) {
	var s jsonscan.Scanner
	s.Reset(parameters)
	found := false
	if s.Peek() != '{' {
		return "", nil, errNoKey
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "key":
			if s.Peek() == '"' {
				key, found = s.Text(), true
			} else {
				s.Skip()
			}
		case "value":
			value = s.Raw()
		default:
			s.Skip()
		}
	}
	if !found {
		return "", nil, errNoKey
	}
	return key, value, s.End()
}

// stateWrite writes parameters.value to parameters.key; its output is the value.
func (r *run) stateWrite(o *Outcome) (json.RawMessage, error) {
	key, raw, err := keyAndValue(o.Action.Parameters)
	if err != nil {
		return nil, err
	}
	v, err := newValue(key, raw)
	if err != nil {
		return nil, err
	}
	if err := r.state.write(key, v); err != nil {
		return nil, err
	}
	o.changed(key, v)
	return v.Raw(), nil
}

// stateRead gives the value of parameters.key; null where there is none.
func (r *run) stateRead(a *Action) (json.RawMessage, error) {
	key, _, err := keyAndValue(a.Parameters)
	if err != nil {
		return nil, err
	}
	return r.state.Get(key), nil
}

// assertion checks what parameters say, which have the form of a precondition (with expected in the place of value, if one
// likes), and the preconditions. An assertion that asserts nothing fails.
func (r *run) assertion(a *Action) (json.RawMessage, error) {
	checks, err := assertions(a)
	if err != nil {
		return nil, err
	}
	for i := range checks {
		if problem := checks[i].holds(r.state); problem != "" {
			return nil, fmt.Errorf("assertion failed: %s", problem)
		}
	}
	return json.RawMessage("true"), nil
}

func assertions(a *Action) ([]Precondition, error) {
	checks := a.Preconditions
	if key, value, err := keyAndValue(a.Parameters); err == nil {
		p := Precondition{Key: key, Operator: "eq", Value: value}
		p.Operator, p.Value = operatorAndExpected(a.Parameters, p)
		checks = append(checks[:len(checks):len(checks)], p)
	}
	if len(checks) == 0 {
		return nil, errors.New("assertion failed: it asserts nothing: expected parameters key and value, or preconditions")
	}
	return checks, nil
}

// operatorAndExpected reads what else the parameters of an assertion have. An operator that is no text is unknown.
func operatorAndExpected(parameters json.RawMessage, p Precondition) (operator string, expected json.RawMessage) {
	operator, expected = p.Operator, p.Value
	var s jsonscan.Scanner
	s.Reset(parameters)
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "operator":
			if raw := s.Raw(); string(raw) != "null" && json.Unmarshal(raw, &operator) != nil {
				operator = string(raw)
			}
		case "expected":
			expected = s.Raw()
		default:
			s.Skip()
		}
	}
	return operator, expected
}

// changed notes a write of the action.
func (o *Outcome) changed(key string, v policy.Value) {
	change := append([]byte(`{"op":"set","value":`), v.Raw()...)
	o.Result.StateChanges[key] = append(change, '}')
}
