package policy

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

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
