package policy

import (
	"encoding/json"
	"fmt"
	"strings"

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
