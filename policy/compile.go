package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

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
