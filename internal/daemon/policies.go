package daemon

import (
	"context"
	"maps"

	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// scopes are the policies of one connection: its own and those of each scope that session.policy.open made. Sets are
// immutable: a change makes another, and the next submission runs under it. Its session guards it.
type scopes struct {
	own    *policy.Set
	opened map[string]*policy.Set
	count  int // policies in all of them
	most   int // of those
	size   int // bytes of them, taken from room
	room   *quota
	// joined is what is in force in a scope, the daemon's policies and the connection's first; emptied by every change.
	joined map[string]*policy.Set
}

// in returns the set of a scope; "" is the connection's.
func (c *scopes) in(scope string) (*policy.Set, error) {
	if scope == "" {
		return c.own, nil
	}
	set, open := c.opened[scope]
	if !open {
		return nil, failed("no policy session %s is open on this connection", printable(scope))
	}
	return set, nil
}

func (c *scopes) put(scope string, set *policy.Set) {
	c.joined = nil
	if scope == "" {
		c.own = set
		return
	}
	c.opened[scope] = set
}

// inForce joins what judges a submission under a scope. A scope that is not open closes everything.
func (c *scopes) inForce(daemon *policy.Set, scope string) *policy.Set {
	if set, ok := c.joined[scope]; ok {
		return set
	}
	own, err := c.in(scope)
	if err != nil {
		return policy.Join(daemon, c.own, policy.Closed("session_policy", "the policy session is not open"))
	}
	sets := []*policy.Set{daemon, c.own}
	if scope != "" {
		sets = append(sets, own)
	}
	if c.joined == nil {
		c.joined = make(map[string]*policy.Set)
	}
	c.joined[scope] = policy.Join(sets...)
	return c.joined[scope]
}

func policyRegister(_ context.Context, s *session, p *rpcapi.PolicyRegisterParams) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.policies.add(s.scopeOf(p.SessionID), p); err != nil {
		return nil, err
	}
	return rpcapi.PolicyRegisterResult{Name: p.Name, Registered: p.Name, Scope: rpcapi.Scope{SessionID: p.SessionID}}, nil
}

// add puts one policy in force.
func (c *scopes) add(scope string, p *rpcapi.PolicyRegisterParams) error {
	set, err := c.in(scope)
	if err != nil {
		return err
	}
	if c.count >= c.most {
		return badParams("a connection has at most %d policies: unregister some", c.most)
	}
	if set, err = set.With(p.PolicyRule); err != nil {
		return badParams("%v", err)
	}
	size := ruleSize(&p.PolicyRule)
	if !c.room.take(size) {
		return noRoom()
	}
	c.count++
	c.size += size
	c.put(scope, set)
	return nil
}

// ruleSize is about how many bytes a compiled rule holds.
func ruleSize(r *policy.Rule) int {
	return 512 + 4*(len(r.Name)+len(r.Rule)+len(r.Target)+len(r.Key)+len(r.Pattern)+len(r.Value))
}

// dropped gives back the room of rules that are gone.
func (c *scopes) dropped(before, after *policy.Set) {
	size := 0
	for _, r := range before.Rules() {
		size += ruleSize(&r)
	}
	for _, r := range after.Rules() {
		size -= ruleSize(&r)
	}
	c.count -= before.Len() - after.Len()
	c.size -= size
	c.room.take(-size)
}

// undo goes back to what was before.
func (c *scopes) undo(before scopes) {
	c.room.take(before.size - c.size)
	*c = before
}

func policyUnregister(_ context.Context, s *session, p *rpcapi.PolicyUnregisterParams) (any, error) {
	if p.Name == "" {
		return nil, badParams("name is required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	scope := s.scopeOf(p.SessionID)
	set, err := s.policies.in(scope)
	if err != nil {
		return nil, err
	}
	left, removed := set.Without(p.Name)
	s.policies.dropped(set, left)
	s.policies.put(scope, left)
	return rpcapi.PolicyUnregisterResult{Unregistered: p.Name, Removed: removed, Scope: rpcapi.Scope{SessionID: p.SessionID}}, nil
}

func policyList(_ context.Context, s *session, p *rpcapi.PolicyListParams) (any, error) {
	s.mu.Lock()
	set, err := s.policies.in(s.scopeOf(p.SessionID))
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	rules := set.Rules()
	out := rpcapi.PolicyListResult{Policies: make([]rpcapi.PolicyInfo, len(rules)), Scope: rpcapi.Scope{SessionID: p.SessionID}}
	for i := range rules {
		out.Policies[i] = rpcapi.PolicyInfo{Name: rules[i].Name, Description: rules[i].Describe()}
	}
	return out, nil
}

func policyOpen(_ context.Context, s *session, _ *struct{}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.policies.opened) >= s.d.o.Limits.Scopes {
		return nil, failed("a connection has at most %d policy sessions open: close some", s.d.o.Limits.Scopes)
	}
	if s.policies.opened == nil {
		s.policies.opened = make(map[string]*policy.Set)
	}
	id := "pol-" + newUUID()
	s.policies.put(id, nil)
	return rpcapi.SessionPolicyOpenResult{SessionID: id}, nil
}

func policyClose(_ context.Context, s *session, p *rpcapi.SessionPolicyCloseParams) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, open := s.policies.opened[p.SessionID]
	if open {
		s.policies.dropped(set, nil)
		delete(s.policies.opened, p.SessionID)
		s.policies.joined = nil
	}
	return rpcapi.SessionPolicyCloseResult{Closed: open}, nil
}

// clone is a copy to go back to.
func (c *scopes) clone() scopes {
	out := *c
	out.opened, out.joined = maps.Clone(c.opened), nil
	return out
}

// policyCheck asks the daemon's own policies, so that a client that runs tools itself is judged as one that has them called.
func policyCheck(ctx context.Context, s *session, p *rpcapi.PolicyCheckParams) (any, error) {
	if p.Tool == "" {
		return nil, badParams("tool is required")
	}
	run, agent, err := s.checkedRun(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	params, err := policy.ParseParameters(p.Parameters)
	if err != nil {
		return nil, badParams("parameters: %v", err)
	}
	a := policy.Action{ID: p.ActionID, Type: "tool_call", Tool: p.Tool, Parameters: params}
	verdict := s.d.policies.Check(&a, s.state.Scope(""), agent)
	if p.Wait && verdict.Asks() {
		s.d.supervision.approve(ctx, rpcapi.Intent{SessionID: s.id, AgentID: agent, RunID: run.Run}, &verdict, params)
		now := s.d.policies.Check(&a, s.state.Scope(""), agent)
		verdict.Stand(&now)
	}
	if err := s.judged(ctx, run, &verdict); err != nil {
		return nil, err
	}
	return &verdict, nil
}
