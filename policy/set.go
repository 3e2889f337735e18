// Package policy decides whether a proposed action may run: rules, compiled into sets, and verdicts.
//
// Goals: every rule of a set judges every action, and everything that stands against it is collected, so that an agent learns
// all of it at once; a verdict, allowed or not, names what was judged and by what, by digests that anybody can compute again;
// a check costs less than a microsecond where only the three rules of the wire are in the set.
//
// A Rule is one of
//
//	deny_tool        the tool named target may not be called
//	deny_tool_param  the parameter key of the tool target may not hold the text pattern
//	require_state    the state's value of key must equal value
//	regex            the parameter key of the tool target may not match pattern (RE2)
//	expr             the expression in pattern (or, a text, in value) must not be true
//
// and docs/reference/policy.md has each with an example, the limits, and how a digest is made. Rules are data: they come from clients
// over the wire and from a file of policies (ReadFile), and a rule that is not understood as a whole is refused when it is
// compiled, by name and with what was expected. A rule never weakens: what cannot be judged (an expression that fails, a text
// too long for a pattern, parameters in which a key stands twice) is denied, and the reason says so.
//
// Digests. Of parameters: BLAKE3-256 of their canonical JSON (RFC 8785 with the departure that package canonjson states), of
// "{}" where there are none. Of a set: BLAKE3-256 of the canonical JSON of the array of its rules, in their order, each with
// the keys that are not empty. Neither is computed before somebody asks.
//
// Ordering: rules judge in the order in which they stand in the set, and violations stand in that order. A Set is immutable
// and may be used by several goroutines at once; With, Without and Join make new ones, which share what was compiled.
//
// What a reason says: rules' own texts and names of keys, never a value of a parameter or of the state; but the error of an
// expression that failed may name the value that it failed on.
//
// Not goals: keeping verdicts, asking people, knowing a wire. Nothing here reads a clock, a file (but ReadFile) or the network,
// so that equal sets judge equal actions in equal states equally at any time.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A Set is a list of compiled rules. It is immutable; a nil *Set has no rules and allows everything.
type Set struct {
	rules  []*compiled
	once   sync.Once
	digest cas.Digest
}

// Compile makes a set of rules. What a kind needs beside a name:
//
//	deny_tool        target
//	deny_tool_param  target, key, pattern
//	require_state    key, value (no value is null)
//	regex            pattern; target and key may be "": any tool, any parameter at any depth
//	expr             pattern, or value that is a text
//	approve          target, or target, key and pattern
//
// Several rules may have one name. The error is a *RuleError.
func Compile(rules []Rule) (*Set, error) {
	s := &Set{rules: make([]*compiled, 0, min(len(rules), MaxRules))}
	for i := range rules {
		c, err := compile(&rules[i])
		if err == nil && i >= MaxRules {
			err = wrong(&rules[i], "", tooMany)
		}
		if err != nil {
			err.Index = i
			return nil, err
		}
		s.rules = append(s.rules, c)
	}
	return s, nil
}

const tooMany = "a set has at most 1024 rules: join several by an expression, or take some away"

// With returns s with r behind its rules. The error is a *RuleError.
func (s *Set) With(r Rule) (*Set, error) {
	c, err := compile(&r)
	if err == nil && s.Len() >= MaxRules {
		err = wrong(&r, "", tooMany)
	}
	if err != nil {
		return nil, err
	}
	if s == nil {
		return &Set{rules: []*compiled{c}}, nil
	}
	return &Set{rules: append(slices.Clip(s.rules), c)}, nil
}

// Without returns s without the rules of that name, and how many there were.
func (s *Set) Without(name string) (*Set, int) {
	if s == nil {
		return nil, 0
	}
	out := &Set{}
	for _, c := range s.rules {
		if c.rule.Name != name {
			out.rules = append(out.rules, c)
		}
	}
	return out, len(s.rules) - len(out.rules)
}

// Closed returns a set that denies every action, for the session of policies that is not there: what nobody can judge does not
// run. name and reason are those of the violation.
func Closed(name, reason string) *Set {
	r := Rule{Name: name, Rule: "closed", Pattern: reason}
	canonical, _ := r.appendCanonical(nil) // which fails on values alone
	return &Set{rules: []*compiled{{rule: r, canonical: canonical, judge: closed(reason)}}}
}

type closed string

func (c closed) against(*subject) string { return string(c) }

// Join returns a set of the rules of all of sets, one after another: those of the daemon, of a connection, of a session of
// policies. A name may stand in several of them, and each rule judges.
func Join(sets ...*Set) *Set {
	var only *Set
	n, several := 0, false
	for _, s := range sets {
		if k := s.Len(); k > 0 {
			several = n > 0
			n += k
			only = s
		}
	}
	if !several {
		return only
	}
	out := &Set{rules: make([]*compiled, 0, n)}
	for _, s := range sets {
		if s != nil {
			out.rules = append(out.rules, s.rules...)
		}
	}
	return out
}

// Len returns how many rules s has.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.rules)
}

// Rules returns the rules of s in their order.
func (s *Set) Rules() []Rule {
	out := make([]Rule, s.Len())
	for i := range out {
		out[i] = s.rules[i].rule
	}
	return out
}

// noRules is the digest of "[]".
var noRules = cas.Sum([]byte("[]"))

// Digest returns the BLAKE3-256 of the canonical JSON of the array of s's rules. It is computed at the first call.
func (s *Set) Digest() cas.Digest {
	if s == nil {
		return noRules
	}
	s.once.Do(func() {
		b := []byte{'['}
		for i, c := range s.rules {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, c.canonical...)
		}
		s.digest = cas.Sum(append(b, ']'))
	})
	return s.digest
}

// An Action is what a set judges.
type Action struct {
	ID         string
	Type       string // "tool_call", …
	Tool       string // "" where it is no call of a tool
	Parameters *Parameters
}

// State is what require_state and expr look into.
type State interface {
	// Lookup returns the value of key.
	Lookup(key string) (Value, bool)
	// Keys returns all keys, in any order.
	Keys() []string
}

// Check lets every rule of s judge a, which agent proposes in a state. A nil state is an empty one.
func (s *Set) Check(a *Action, state State, agent string) Verdict {
	v := Verdict{ActionID: a.ID, Type: a.Type, Tool: a.Tool, Agent: agent, parameters: a.Parameters, set: s}
	if s != nil {
		sub := subject{action: a, state: state, agent: agent}
		for _, c := range s.rules {
			if reason := c.judge.against(&sub); reason != "" {
				v.Violations = append(v.Violations, Violation{c.rule.Name, a.ID, reason, c.rule.Rule, c.param})
			}
		}
	}
	v.Allowed = len(v.Violations) == 0
	return v
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Limits of all rules of one check together.
const (
	maxSpent = 1 << 20 // what expressions look at in loops and in functions: elements, and 16 bytes of text each
	maxWork  = 1 << 26 // of patterns: their steps times the bytes of the texts; half a second at the very worst
)

var (
	errSpent = errors.New("it looks at more than it may: shorten its loops, or what it looks at")
	errWork  = errors.New("the patterns of all policies have more to look at than they may: name a target and a key in them")
)

// A budget is what one check has used. The methods that expressions call panic, which the machine makes the error of the
// evaluation.
type budget struct{ spent, work int }

// match matches a text for all rules' account.
func (b *budget) match(re *boundedregexp.Regexp, text string) (bool, error) {
	const least = 16 // bytes that a match costs where there are fewer
	if b.work += (len(text) + least) * re.Steps(); b.work > maxWork {
		b.work = maxWork
		return false, errWork
	}
	return re.Match(text)
}

// charge charges for a value, and returns it.
func (b *budget) charge(args ...any) any {
	b.spend(args[0])
	return args[0]
}

// chars charges for each byte of a text that is about to become a list.
func (b *budget) chars(args ...any) any {
	if text, ok := args[0].(string); ok {
		b.take(len(text))
	}
	return args[0]
}

func (b *budget) spend(v any) {
	switch v := v.(type) {
	case string:
		b.take(1 + len(v)/16)
	case []any:
		b.take(1)
		for _, e := range v {
			b.spend(e)
		}
	case map[string]any:
		b.take(1)
		for _, e := range v {
			b.spend(e)
		}
	case []string:
		b.take(1 + len(v))
	default:
		b.take(1)
	}
}

func (b *budget) take(n int) {
	if b.spent += n; b.spent > maxSpent {
		b.spent = maxSpent
		panic(errSpent)
	}
}

// matches is the operator of that name. What is not there matches nothing, as it contains nothing.
func (b *budget) matches(v any, re *boundedregexp.Regexp) bool {
	if v == nil {
		return false
	}
	text, ok := v.(string)
	if !ok {
		panic(fmt.Errorf("matches: expected a text, got %T", v))
	}
	yes, err := b.match(re, text)
	if err != nil {
		panic(err)
	}
	return yes
}

// A Violation is one rule that stands against one action. The first three keys are those of the wire.
type Violation struct {
	PolicyName string `json:"policy_name"`
	ActionID   string `json:"action_id"`
	Reason     string `json:"reason"`
	Rule       string `json:"rule,omitempty"`  // the kind of the rule
	Param      string `json:"param,omitempty"` // the rule's key, where it judges one parameter
}

// A Verdict is what a set says of one action.
type Verdict struct {
	Allowed    bool
	Violations []Violation // in the order of the rules; nil where it is allowed
	ActionID   string
	Type       string // of the action: tool_call, state_write, …; "" where it was not said
	Tool       string // "" where the action calls none
	Agent      string
	Approval   *Approval // a person's, where rules asked for one and it is allowed

	parameters *Parameters
	set        *Set
}

// An Approval is a person's word that allowed what rules of the kind approve stood against.
type Approval struct {
	Policies []string `json:"policies"`         // the names of those rules
	Reason   string   `json:"reason,omitempty"` // what the person gave
}

// Asks reports whether nothing but a person's word is missing: every rule that stands against the action is an approve.
func (v *Verdict) Asks() bool {
	return len(v.Violations) > 0 && !slices.ContainsFunc(v.Violations, func(x Violation) bool { return x.Rule != Approve })
}

// Settle puts a person's word in: what Asks is allowed, or denied with why.
func (v *Verdict) Settle(allow bool, why string) {
	if !allow {
		for i := range v.Violations {
			v.Violations[i].Reason = why
		}
		return
	}
	v.Allowed, v.Approval = true, &Approval{Reason: why}
	for _, x := range v.Violations {
		v.Approval.Policies = append(v.Approval.Policies, x.PolicyName)
	}
	v.Violations = nil
}

// Stand takes an approval back where now, what the same rules say once a person has decided, has other rules that stand against the action:
// its state may have changed meanwhile.
func (v *Verdict) Stand(now *Verdict) {
	others := slices.DeleteFunc(slices.Clone(now.Violations), func(x Violation) bool { return x.Rule == Approve })
	if v.Allowed && len(others) > 0 {
		v.Allowed, v.Approval, v.Violations = false, nil, others
	}
}

// ParamsDigest is that of the parameters that were judged.
func (v *Verdict) ParamsDigest() cas.Digest { return v.parameters.Digest() }

// PolicySet is the digest of the set that judged.
func (v *Verdict) PolicySet() cas.Digest { return v.set.Digest() }

// Reason is that of the first violation, and how many others there are; "" where the action is allowed.
func (v *Verdict) Reason() string {
	switch n := len(v.Violations); n {
	case 0:
		return ""
	case 1:
		return v.Violations[0].Reason
	default:
		return v.Violations[0].Reason + " (and " + plural(n-1, "other") + ")"
	}
}

// AppendJSON appends the decision as it stands on a tape, in the field verdict of a policy_verdict, which has action, tool and
// digests beside it:
//
//	{"kind":"allow"}
//	{"kind":"allow","approval":{"policies":["…"],"reason":"…"}}
//	{"kind":"deny","reason":"…","violations":[{"policy_name":"…","action_id":"…","reason":"…","rule":"…","param":"…"}]}
func (v *Verdict) AppendJSON(dst []byte) []byte {
	if v.Allowed {
		dst = append(dst, `{"kind":"allow"`...)
		if v.Approval != nil {
			b, _ := json.Marshal(v.Approval) // texts
			dst = append(append(dst, `,"approval":`...), b...)
		}
		return append(dst, '}')
	}
	dst = jsonscan.AppendText(append(dst, `{"kind":"deny","reason":`...), v.Reason())
	dst = append(dst, `,"violations":[`...)
	for i := range v.Violations {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.Violations[i].appendJSON(dst)
	}
	return append(dst, "]}"...)
}

func (v *Violation) appendJSON(dst []byte) []byte {
	dst = jsonscan.AppendText(append(dst, `{"policy_name":`...), v.PolicyName)
	dst = jsonscan.AppendText(append(dst, `,"action_id":`...), v.ActionID)
	dst = jsonscan.AppendText(append(dst, `,"reason":`...), v.Reason)
	if v.Rule != "" {
		dst = jsonscan.AppendText(append(dst, `,"rule":`...), v.Rule)
	}
	if v.Param != "" {
		dst = jsonscan.AppendText(append(dst, `,"param":`...), v.Param)
	}
	return append(dst, '}')
}

// MarshalJSON gives the whole verdict, of which AppendJSON's object is "verdict", as policy_verdict has it, and the action's type.
func (v *Verdict) MarshalJSON() ([]byte, error) {
	dst := append(make([]byte, 0, 512), `{"policy_set":"`...)
	dst, _ = v.PolicySet().AppendText(dst)
	dst = jsonscan.AppendText(append(dst, `","action_id":`...), v.ActionID)
	if v.Type != "" {
		dst = jsonscan.AppendText(append(dst, `,"type":`...), v.Type)
	}
	dst = jsonscan.AppendText(append(dst, `,"tool":`...), v.Tool)
	dst, _ = v.ParamsDigest().AppendText(append(dst, `,"params_digest":"`...))
	dst = v.AppendJSON(append(dst, `","verdict":`...))
	return append(dst, '}'), nil
}
