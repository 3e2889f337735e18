package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// The kinds of rules, as they stand in Rule.Rule.
const (
	DenyTool      = "deny_tool"
	DenyToolParam = "deny_tool_param"
	RequireState  = "require_state"
	Regex         = "regex"
	Expr          = "expr"
	Approve       = "approve"
)

// Limits of a rule and of a set. What is over one is refused when it is compiled.
const (
	MaxRules   = 1024     // of a set
	MaxName    = 256      // bytes of a rule's name, target and key each
	MaxPattern = 4 << 10  // bytes of a pattern or an expression
	MaxValue   = 64 << 10 // bytes of the JSON of a value
)

// A Rule is one policy as it stands on the wire and in a file. Which fields a kind needs stands with Compile; a field that the
// kind has no use for is kept, counts in the digest of the set, and does nothing.
type Rule struct {
	Name    string          `json:"name"`
	Rule    string          `json:"rule"`              // the kind: "deny_tool", …
	Target  string          `json:"target,omitempty"`  // the tool, by its exact name; "" is any tool where the kind allows it
	Key     string          `json:"key,omitempty"`     // of the parameter or of the state
	Pattern string          `json:"pattern,omitempty"` // a text, a regular expression, an expression
	Value   json.RawMessage `json:"value,omitempty"`   // any JSON; none where it is not there
}

// A RuleError says why a rule cannot be compiled.
type RuleError struct {
	Index   int    // of the rule in the list, from 0; -1 where it did not come from a list
	Name    string // of the rule; may be ""
	Field   string // that is wrong: "rule", "target", …; "" for the rule as a whole
	Problem string // what was expected and what came
}

func (e *RuleError) Error() string {
	var b strings.Builder
	b.WriteString("policy ")
	if e.Index >= 0 {
		fmt.Fprintf(&b, "%d ", e.Index+1)
	}
	if e.Name != "" {
		fmt.Fprintf(&b, "%q", shorten(e.Name))
	} else {
		b.WriteString("without a name")
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	return b.String() + ": " + e.Problem
}

// Describe says in one line what r does, for lists of policies.
func (r *Rule) Describe() string {
	tool := "any tool"
	if r.Target != "" {
		tool = fmt.Sprintf("tool %q", r.Target)
	}
	switch r.Rule {
	case DenyTool:
		return "deny " + tool
	case DenyToolParam:
		return fmt.Sprintf("deny %s where parameter %q contains %q", tool, r.Key, r.Pattern)
	case RequireState:
		return fmt.Sprintf("require state %q to equal %s", r.Key, valueText(r.Value))
	case Regex:
		if r.Key == "" {
			return fmt.Sprintf("deny %s where a parameter matches %q", tool, r.Pattern)
		}
		return fmt.Sprintf("deny %s where parameter %q matches %q", tool, r.Key, r.Pattern)
	case Expr:
		return fmt.Sprintf("deny where %s", r.expression())
	case Approve:
		if r.Key == "" {
			return "ask a person about " + tool
		}
		return fmt.Sprintf("ask a person about %s where parameter %q contains %q", tool, r.Key, r.Pattern)
	}
	return "a rule of the unknown kind " + r.Rule
}

// expression is the text of an expr rule, which stands as pattern or as a text in value.
func (r *Rule) expression() string {
	if r.Pattern != "" || len(r.Value) == 0 {
		return r.Pattern
	}
	v, err := canonjson.Parse(r.Value)
	if err != nil {
		return ""
	}
	return v.Text()
}

func valueText(v json.RawMessage) string {
	if len(v) == 0 {
		return "null"
	}
	return shorten(string(v))
}

// appendCanonical appends the canonical JSON of r without the keys that are empty: what the digest of a set is made of.
func (r *Rule) appendCanonical(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	text := func(key, s string, always bool) {
		if s == "" && !always {
			return
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), '"', ':')
		dst = canonjson.AppendString(dst, s)
	}
	text("key", r.Key, false)
	text("name", r.Name, true)
	text("pattern", r.Pattern, false)
	text("rule", r.Rule, true)
	text("target", r.Target, false)
	var err error
	if len(r.Value) > 0 && strings.TrimSpace(string(r.Value)) != "null" {
		dst, err = canonjson.Append(append(dst, `,"value":`...), r.Value)
	}
	return append(dst, '}'), err
}

// shorten keeps what came from a client from filling a message.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// A compiled rule judges without reading its texts again.
type compiled struct {
	rule      Rule
	canonical []byte
	param     string // of its violations
	judge     judge
}

// A judge says what stands against a subject; "" is nothing.
type judge interface {
	against(*subject) string
}

// A subject is one action while it is judged.
type subject struct {
	action *Action
	state  State
	agent  string
	more   *scratch
}

// A scratch is what the rules of one check share. The rules of the wire need none where a parameter is a text, and a check by
// them is to stay small.
type scratch struct {
	budget
	plain  map[string]any   // the parameters as expressions have them, made by the first
	looked *canonjson.Value // what was looked into last
	json   string           // of it
}

func (s *subject) scratch() *scratch {
	if s.more == nil {
		s.more = &scratch{}
	}
	return s.more
}

func wrong(r *Rule, field, format string, args ...any) *RuleError {
	return &RuleError{Index: -1, Name: r.Name, Field: field, Problem: fmt.Sprintf(format, args...)}
}

func compile(r *Rule) (*compiled, *RuleError) {
	if err := checkTexts(r); err != nil {
		return nil, err
	}
	c := &compiled{rule: *r}
	if string(c.rule.Value) == "" {
		c.rule.Value = nil
	}
	var err error
	if c.canonical, err = r.appendCanonical(nil); err != nil {
		return nil, wrong(r, "value", "expected JSON: %v", err)
	}
	var re *RuleError
	switch r.Rule {
	case DenyTool:
		c.judge, re = compileDenyTool(r)
	case DenyToolParam:
		c.param = r.Key
		c.judge, re = compileDenyToolParam(r)
	case RequireState:
		c.judge, re = compileRequireState(r)
	case Regex:
		c.param = r.Key
		c.judge, re = compileRegex(r)
	case Expr:
		c.judge, re = compileExpr(r)
	case Approve:
		c.param = r.Key
		c.judge, re = compileApprove(r)
	default:
		re = wrong(r, "rule", "expected deny_tool, deny_tool_param, require_state, regex, expr or approve, got %q", shorten(r.Rule))
	}
	if re != nil {
		return nil, re
	}
	return c, nil
}

func checkTexts(r *Rule) *RuleError {
	if r.Name == "" {
		return wrong(r, "name", "expected a text, got none: violations are told by it")
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{
		{"name", r.Name, MaxName}, {"rule", r.Rule, MaxName}, {"target", r.Target, MaxName}, {"key", r.Key, MaxName},
		{"pattern", r.Pattern, MaxPattern}, {"value", string(r.Value), MaxValue},
	} {
		if len(f.text) > f.most {
			return wrong(r, f.name, "%d bytes, more than %d: shorten it", len(f.text), f.most)
		}
		if !utf8.ValidString(f.text) {
			return wrong(r, f.name, "expected UTF-8, got bytes that are none")
		}
	}
	return nil
}

// need refuses a rule that lacks one of the fields.
func need(r *Rule, fields ...string) *RuleError {
	for _, f := range fields {
		text := map[string]string{"target": r.Target, "key": r.Key, "pattern": r.Pattern}[f]
		if text == "" {
			return wrong(r, f, "%s needs %s, and there is none", r.Rule, strings.Join(fields, ", "))
		}
	}
	return nil
}

type denyTool struct{ target, reason string }

func compileDenyTool(r *Rule) (judge, *RuleError) {
	if err := need(r, "target"); err != nil {
		return nil, err
	}
	return &denyTool{r.Target, fmt.Sprintf("tool '%s' denied", shorten(r.Target))}, nil
}

func (d *denyTool) against(s *subject) string {
	if s.action.Tool != d.target {
		return ""
	}
	return d.reason
}

type denyToolParam struct{ target, key, pattern, reason string }

func compileDenyToolParam(r *Rule) (judge, *RuleError) {
	if err := need(r, "target", "key", "pattern"); err != nil {
		return nil, err
	}
	return &denyToolParam{r.Target, r.Key, r.Pattern, fmt.Sprintf("param '%s' matches '%s'", shorten(r.Key), shorten(r.Pattern))}, nil
}

func (d *denyToolParam) against(s *subject) string {
	if s.action.Tool != d.target {
		return ""
	}
	v, ok := s.action.Parameters.get(d.key)
	if !ok {
		return ""
	}
	for text := range s.texts(v) {
		if strings.Contains(text, d.pattern) {
			return d.reason
		}
	}
	return ""
}

// compileApprove makes a judge that stands against what a person has not allowed: the caller asks one, and settles the verdict.
func compileApprove(r *Rule) (judge, *RuleError) {
	if r.Key == "" && r.Pattern == "" {
		if err := need(r, "target"); err != nil {
			return nil, err
		}
		return &denyTool{r.Target, fmt.Sprintf("tool '%s' is for a person to allow", shorten(r.Target))}, nil
	}
	if err := need(r, "target", "key", "pattern"); err != nil {
		return nil, err
	}
	reason := fmt.Sprintf("param '%s' matches '%s', which is for a person to allow", shorten(r.Key), shorten(r.Pattern))
	return &denyToolParam{r.Target, r.Key, r.Pattern, reason}, nil
}

type requireState struct {
	key    string
	value  Value
	reason string
}

func compileRequireState(r *Rule) (judge, *RuleError) {
	if err := need(r, "key"); err != nil {
		return nil, err
	}
	v, err := NewValue(r.Value)
	if err != nil {
		return nil, wrong(r, "value", "expected JSON: %v", err)
	}
	return &requireState{r.Key, v, fmt.Sprintf("state['%s'] must be %s", shorten(r.Key), shorten(string(v.Canonical())))}, nil
}

func (q *requireState) against(s *subject) string {
	if s.state == nil {
		return q.reason
	}
	if v, ok := s.state.Lookup(q.key); !ok || !v.Equal(q.value) {
		return q.reason
	}
	return ""
}

// texts gives what a text may be looked for in: a string as it stands; of anything else its canonical JSON, and each string,
// key and number within it, so that no escape hides one.
func (s *subject) texts(v *canonjson.Value) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if v.Kind == canonjson.String {
			yield(v.Str)
			return
		}
		last := s.scratch()
		if last.looked != v {
			last.looked, last.json = v, string(v.Append(nil))
		}
		if yield(last.json) && (v.Kind == canonjson.Array || v.Kind == canonjson.Object) {
			leaves(v, yield)
		}
	}
}

// leaves gives each string, key, number and word within v, at any depth, and reports whether more are wanted.
func leaves(v *canonjson.Value, yield func(string) bool) bool {
	switch v.Kind {
	case canonjson.String:
		return yield(v.Str)
	case canonjson.Array:
		for i := range v.Elems {
			if !leaves(&v.Elems[i], yield) {
				return false
			}
		}
		return true
	case canonjson.Object:
		for i := range v.Members {
			if m := &v.Members[i]; !yield(m.Key) || !leaves(&m.Value, yield) {
				return false
			}
		}
		return true
	}
	return yield(string(v.Append(nil)))
}
