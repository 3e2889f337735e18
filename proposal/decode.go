package proposal

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// A SyntaxError says what of a proposal cannot be read, and where.
type SyntaxError struct {
	Path    string // "actions[3].type"; "" for the proposal as a whole
	Problem string // what was expected and what came
}

func (e *SyntaxError) Error() string {
	if e.Path == "" {
		return "proposal: " + e.Problem
	}
	return "proposal: " + e.Path + ": " + e.Problem
}

// Parse reads a proposal. Only actions and the type of each must be there; null is as absent; keys that it does not know are
// passed over. A proposal or an action without an id gets one. A key that stands twice in one object, anywhere, is an error:
// one of the two would be judged, and who knows which one would run. raw is kept in parts, and must not be changed. The error
// is a *SyntaxError.
func Parse(raw []byte) (*Proposal, error) {
	if err := jsonscan.Valid(raw); err != nil {
		return nil, &SyntaxError{Problem: "expected JSON: " + err.Error()}
	}
	if key, at, twice := jsonscan.Duplicate(raw); twice {
		return nil, &SyntaxError{Problem: fmt.Sprintf("byte %d: the key %.100q stands twice", at+1, key)}
	}
	p := &Proposal{Source: "unknown"}
	d := decoder{}
	d.Reset(raw)
	d.proposal(p)
	if d.err != nil {
		return nil, d.err
	}
	if p.ID == "" {
		p.ID = newID()
	}
	return p, nil
}

// UnmarshalJSON reads a proposal as Parse does.
func (p *Proposal) UnmarshalJSON(raw []byte) error {
	// Whoever calls this may use the bytes again.
	q, err := Parse(append([]byte(nil), raw...))
	if err == nil {
		*p = *q
	}
	return err
}

// newID is a label of 12 hex digits.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // which never fails
	return hex.EncodeToString(b[:])
}

// A decoder walks over JSON that is valid. Its first error stays.
type decoder struct {
	jsonscan.Scanner
	err *SyntaxError
}

func (d *decoder) fail(path, format string, args ...any) {
	if d.err == nil {
		d.err = &SyntaxError{path, fmt.Sprintf(format, args...)}
	}
}

// is reports whether the next value is of the wanted kind, and steps over it where it is null or another, which is an error.
func (d *decoder) is(path, want string, first string) bool {
	c := d.Peek()
	for i := range len(first) {
		if c == first[i] {
			return true
		}
	}
	if c != 'n' {
		d.fail(path, "expected %s, got %s", want, kindOf(c))
	}
	d.Skip()
	return false
}

func kindOf(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (d *decoder) text(path string, to *string) {
	if d.is(path, "a string", `"`) {
		*to = d.Text()
	}
}

func (d *decoder) bool(path string, to *bool) {
	if d.is(path, "true or false", "tf") {
		*to = d.Bool()
	}
}

// int reads a whole number, of which 3.0 is one, between least and most.
func (d *decoder) int(path string, to *int64, least, most int64) {
	if !d.is(path, "a whole number", "-0123456789") {
		return
	}
	text := d.Raw()
	var n float64
	if err := json.Unmarshal(text, &n); err != nil || n != float64(int64(n)) || n < float64(least) || n > float64(most) {
		d.fail(path, "expected a whole number from %d to %d, got %.40s", least, most, text)
		return
	}
	*to = int64(n)
}

func (d *decoder) raw(to *json.RawMessage) { *to = d.Raw() }

// list calls each for every element of an array of at most most.
func (d *decoder) list(path string, most int, each func(path string)) {
	if !d.is(path, "an array", "[") {
		return
	}
	n := 0
	for d.Begin('['); d.More(']'); n++ {
		if n >= most {
			d.fail(path, "more than %d: split the proposal", most)
		}
		if d.err != nil {
			d.Skip()
			continue
		}
		each(fmt.Sprintf("%s[%d]", path, n))
	}
}

func (d *decoder) proposal(p *Proposal) {
	if d.Peek() != '{' {
		d.fail("", "expected an object, got %s", kindOf(d.Peek()))
		return
	}
	for d.Begin('{'); d.More('}'); {
		switch string(d.Key()) {
		case "id":
			d.text("id", &p.ID)
		case "source":
			d.text("source", &p.Source)
		case "timestamp":
			d.text("timestamp", &p.Timestamp)
		case "context":
			d.raw(&p.Context)
		case "actions":
			if d.Peek() == '[' {
				p.Actions = []Action{}
			}
			d.list("actions", MaxActions, func(path string) {
				p.Actions = append(p.Actions, Action{})
				d.action(path, &p.Actions[len(p.Actions)-1])
			})
		default:
			d.Skip()
		}
	}
	if p.Actions == nil {
		d.fail("actions", "expected an array, got none")
	}
}

func (d *decoder) action(path string, a *Action) {
	if d.Peek() != '{' {
		d.fail(path, "expected an object, got %s", kindOf(d.Peek()))
		d.Skip()
		return
	}
	retries := int64(-1)
	for d.Begin('{'); d.More('}'); {
		key := string(d.Key())
		at := path + "." + key
		switch key {
		case "id":
			d.text(at, &a.ID)
		case "type":
			d.text(at, &a.Type)
		case "tool":
			d.text(at, &a.Tool)
		case "parameters":
			d.raw(&a.Parameters)
		case "preconditions":
			d.list(at, MaxPreconditions, func(path string) { a.Preconditions = append(a.Preconditions, d.precondition(path)) })
		case "expected_effects":
			d.effects(at, a)
		case "state_dependencies":
			d.list(at, MaxDependencies, func(path string) {
				var key string
				d.text(path, &key)
				a.StateDependencies = append(a.StateDependencies, key)
			})
		case "idempotent":
			d.bool(at, &a.Idempotent)
		case "max_retries":
			d.int(at, &retries, 0, MaxRetries)
		case "failure_behavior":
			d.text(at, &a.FailureBehavior)
		case "timeout_ms":
			d.int(at, &a.TimeoutMS, 0, MaxTimeoutMS)
		case "reversibility":
			d.raw(&a.Reversibility)
		case "compensation":
			d.raw(&a.Compensation)
		case "metadata":
			d.raw(&a.Metadata)
		default:
			d.Skip()
		}
	}
	if retries >= 0 {
		n := int(retries)
		a.MaxRetries = &n
	}
	d.sensible(path, a)
}

// sensible fills in what is absent, and refuses words that mean nothing.
func (d *decoder) sensible(path string, a *Action) {
	switch a.Type {
	case ToolCall, StateWrite, StateRead, Assertion:
	default:
		d.fail(path+".type", "expected tool_call, state_write, state_read or assertion, got %.100q", a.Type)
	}
	switch a.FailureBehavior {
	case "":
		a.FailureBehavior = Abort
	case Abort, Retry, Skip:
	default:
		d.fail(path+".failure_behavior", "expected abort, retry or skip, got %.100q", a.FailureBehavior)
	}
	if a.ID == "" {
		a.ID = newID()
	}
}

func (d *decoder) precondition(path string) Precondition {
	var p Precondition
	if d.Peek() != '{' {
		d.fail(path, "expected an object, got %s", kindOf(d.Peek()))
		d.Skip()
		return p
	}
	hasKey := false
	for d.Begin('{'); d.More('}'); {
		switch string(d.Key()) {
		case "key":
			hasKey = d.Peek() == '"'
			d.text(path+".key", &p.Key)
		case "operator":
			d.text(path+".operator", &p.Operator)
		case "value":
			d.raw(&p.Value)
		default:
			d.Skip()
		}
	}
	if p.Operator == "" {
		p.Operator = "eq"
	}
	if !hasKey {
		d.fail(path+".key", "expected the key of a state, got none")
	}
	return p
}

func (d *decoder) effects(path string, a *Action) {
	if !d.is(path, "an object", "{") {
		return
	}
	a.ExpectedEffects = make(map[string]json.RawMessage)
	for d.Begin('{'); d.More('}'); {
		key := string(d.Key())
		a.ExpectedEffects[key] = d.Raw()
		if len(a.ExpectedEffects) > MaxEffects {
			d.fail(path, "more than %d: split the action", MaxEffects)
		}
	}
}

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
