package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// supervision is what waits for people, and the connections that are told of it. A proposal waits where a supervisor's filter matches it, an
// action where a policy leaves it to a person (approve), a supervisor there or not. What nobody decides in time is denied; so is what finds
// no room to wait. A supervisor that goes away lets nothing go.
type supervision struct {
	within time.Duration // for which something waits
	most   int           // that wait at once

	mu       sync.Mutex
	watchers map[*session]*watcher
	waiting  []*intent // oldest first
	last     uint64    // number that an intent was given
	closed   bool      // nothing waits any more: the daemon stops
}

// An intent waits until it is taken from the list: who takes it decides it.
type intent struct {
	rpcapi.Intent
	number  uint64               // a new one each time that supervisors are to be told
	decided chan rpcapi.Decision // holds one
}

func newSupervision(within time.Duration, most int) *supervision {
	return &supervision{within: within, most: most, watchers: make(map[*session]*watcher)}
}

// wants reports whether some supervisor has a proposal wait. Without a supervisor it costs the look that says so.
func (v *supervision) wants(agent string, p *proposal.Proposal) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	calls := func(tool string) bool {
		return slices.ContainsFunc(p.Actions, func(a proposal.Action) bool { return a.Type == proposal.ToolCall && a.Tool == tool })
	}
	for _, w := range v.watchers {
		if w.matches(agent, calls) {
			return true
		}
	}
	return false
}

// park waits for a decision, which is to allow or to deny.
func (v *supervision) park(ctx context.Context, in *intent) rpcapi.Decision {
	if why := v.add(in); why != "" {
		return denied(why)
	}
	timer := time.NewTimer(v.within)
	defer timer.Stop()
	for {
		select {
		case d := <-in.decided:
			return d
		case <-timer.C:
			switch left, taken := v.expire(in); {
			case taken:
				return denied(fmt.Sprintf("nobody decided within %v", v.within))
			case left > 0: // it was escalated
				timer.Reset(left)
			}
		case <-ctx.Done():
			if v.take(in.IntentID) != nil {
				return denied("who proposed it has gone, or its time is over")
			}
		}
	}
}

func denied(why string) rpcapi.Decision {
	return rpcapi.Decision{Kind: rpcapi.DecisionDeny, Reason: why}
}

// add has an intent wait; where it may not it says why.
func (v *supervision) add(in *intent) (why string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed:
		return stopping
	case len(v.waiting) >= v.most:
		return "too much waits for a decision"
	}
	in.IntentID, in.decided = "intent-"+newUUID(), make(chan rpcapi.Decision, 1)
	in.ParkedAt = time.Now().UTC()
	v.waiting = append(v.waiting, in)
	v.announce(in)
	return ""
}

const stopping = "the daemon is stopping"

// close denies all that waits, and all that would.
func (v *supervision) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for _, in := range v.waiting {
		in.decided <- denied(stopping)
	}
	v.waiting = nil
}

// announce gives an intent its time and has supervisors told. v.mu is held.
func (v *supervision) announce(in *intent) {
	v.last++
	in.number, in.Deadline = v.last, time.Now().UTC().Add(v.within)
	for _, w := range v.watchers {
		w.wake()
	}
}

// expire takes an intent whose time is over, or says how long it has yet.
func (v *supervision) expire(in *intent) (left time.Duration, taken bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := v.find(in.IntentID)
	if left = time.Until(in.Deadline); i < 0 || left > 0 {
		return left, false
	}
	v.waiting = slices.Delete(v.waiting, i, i+1)
	return 0, true
}

// take takes an intent from those that wait; nil where it does not.
func (v *supervision) take(id string) *intent {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := v.find(id)
	if i < 0 {
		return nil
	}
	in := v.waiting[i]
	v.waiting = slices.Delete(v.waiting, i, i+1)
	return in
}

func (v *supervision) find(id string) int {
	return slices.IndexFunc(v.waiting, func(in *intent) bool { return in.IntentID == id })
}

// escalate leaves an intent to somebody else, with its time anew.
func (v *supervision) escalate(id, why string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := v.find(id)
	if i < 0 {
		return false
	}
	v.waiting[i].Escalated = why
	v.announce(v.waiting[i])
	return true
}

// pending are the intents after a number, and the number of the last; w is who asks, nil for all.
func (v *supervision) pending(w *watcher, after uint64) (list []rpcapi.Intent, last uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	list = []rpcapi.Intent{}
	for _, in := range v.waiting {
		if in.number > after && (w == nil || w.shows(&in.Intent)) {
			list = append(list, in.Intent)
		}
	}
	return list, v.last
}

// A watcher tells one supervisor what waits. One goroutine does it, from the reply to supervision.subscribe to supervision.unsubscribe,
// another supervision.subscribe, or the end of the connection; session.serve stops and waits for it. A supervisor that does not read
// holds nobody but this goroutine: what was decided meanwhile it is not told.
type watcher struct {
	filter rpcapi.SupervisionFilter
	told   uint64        // the number of what it was told last; of its goroutine, once that runs
	some   chan struct{} // holds one while there may be something to tell
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutine has ended
}

func (w *watcher) matches(agent string, calls func(tool string) bool) bool {
	return (w.filter.AgentID == "" || w.filter.AgentID == agent) && (len(w.filter.Tools) == 0 || slices.ContainsFunc(w.filter.Tools, calls))
}

// shows reports whether its supervisor is told of an intent: what a policy asks is for everybody who looks.
func (w *watcher) shows(in *rpcapi.Intent) bool {
	return len(in.Policies) > 0 || w.matches(in.AgentID, func(tool string) bool {
		return slices.ContainsFunc(in.Actions, func(a rpcapi.IntentAction) bool { return a.Tool == tool })
	})
}

func (w *watcher) wake() {
	select {
	case w.some <- struct{}{}:
	default:
	}
}

// tell is the watcher's goroutine; begun is closed when the reply to its subscription is queued.
func (w *watcher) tell(ctx context.Context, s *session, begun <-chan struct{}) {
	defer close(w.done)
	select {
	case <-begun:
	case <-ctx.Done():
		return
	}
	for {
		select {
		case <-w.some:
		case <-ctx.Done():
			return
		}
		list, last := s.d.supervision.pending(w, w.told)
		w.told = last
		for i := range list {
			if s.conn.NotifyWait(ctx, rpcapi.SupervisionIntent, &list[i]) != nil {
				return
			}
		}
	}
}

func supervisionSubscribe(_ context.Context, s *session, r *jsonrpc.Request) (any, error) {
	var p rpcapi.SupervisionSubscribeParams
	if err := read(r.Params, &p); err != nil {
		return nil, err
	}
	if err := s.supervises(); err != nil {
		return nil, err
	}
	w := &watcher{some: make(chan struct{}, 1), done: make(chan struct{})}
	if p.Filter != nil {
		w.filter = *p.Filter
	}
	size := 256 + len(w.filter.AgentID)
	for _, t := range w.filter.Tools {
		size += 32 + len(t)
	}
	if size > maxFilter {
		return nil, badParams("a filter has at most %d bytes", maxFilter)
	}
	ctx, cancel := context.WithCancel(s.conn.Context())
	w.cancel = cancel
	s.d.supervision.watch(s, w).stop()
	var list []rpcapi.Intent
	list, w.told = s.d.supervision.pending(w, 0)
	begun := make(chan struct{})
	go w.tell(ctx, s, begun)
	r.After = func() { close(begun) }
	return rpcapi.SupervisionSubscribeResult{Subscribed: true, Intents: list}, nil
}

// maxFilter bounds what a connection may have held as its filter, in bytes.
const maxFilter = 64 << 10

// watch puts a watcher in the place of an earlier one; nil takes that away. The earlier one is to be stopped.
func (v *supervision) watch(s *session, w *watcher) (earlier *watcher) {
	v.mu.Lock()
	defer v.mu.Unlock()
	earlier = v.watchers[s]
	delete(v.watchers, s)
	if w != nil {
		v.watchers[s] = w
	}
	return earlier
}

// stop ends a watcher, where there is one, and waits for its goroutine.
func (w *watcher) stop() {
	if w != nil {
		w.cancel()
		<-w.done
	}
}

func supervisionUnsubscribe(_ context.Context, s *session, _ *struct{}) (any, error) {
	w := s.d.supervision.watch(s, nil)
	w.stop()
	return rpcapi.SupervisionUnsubscribeResult{Removed: w != nil}, nil
}

func supervisionPending(_ context.Context, s *session, _ *struct{}) (any, error) {
	if err := s.supervises(); err != nil {
		return nil, err
	}
	list, _ := s.d.supervision.pending(nil, 0)
	return rpcapi.SupervisionPendingResult{Intents: list}, nil
}

func supervisionDecide(ctx context.Context, s *session, p *rpcapi.SupervisionDecideParams) (any, error) {
	if err := s.supervises(); err != nil {
		return nil, err
	}
	if len(p.Decision.Reason) > maxReason {
		return nil, badParams("decision.reason: %d bytes, more than %d: shorten it", len(p.Decision.Reason), maxReason)
	}
	found := false
	switch p.Decision.Kind {
	case rpcapi.DecisionAllow, rpcapi.DecisionDeny:
		if in := s.d.supervision.take(p.IntentID); in != nil {
			found = true
			in.decided <- p.Decision
		}
	case rpcapi.DecisionEscalate:
		found = s.d.supervision.escalate(p.IntentID, "escalated: "+p.Decision.Reason)
	default:
		return nil, badParams("decision.kind: want allow, deny or escalate, got \"%s\"", printable(p.Decision.Kind))
	}
	if !found {
		return nil, badParams("no intent %s waits: it was decided, or its time is over", printable(p.IntentID))
	}
	s.log.InfoContext(ctx, "decision of a person", "intent", p.IntentID, "decision", p.Decision.Kind, "reason", p.Decision.Reason)
	s.d.metrics.decisions.With(p.Decision.Kind).Inc()
	return rpcapi.SupervisionDecideResult{IntentID: p.IntentID, Decided: p.Decision.Kind != rpcapi.DecisionEscalate}, nil
}

// maxReason bounds what a person gives as the reason, in bytes.
const maxReason = 4 << 10

// supervised waits where a supervisor has this proposal wait, and returns the decision; nil where nobody wants to see it.
func (sub *submission) supervised(ctx context.Context, agent string, p *proposal.Proposal) *rpcapi.Decision {
	if !sub.s.d.supervision.wants(agent, p) {
		return nil
	}
	in := &intent{Intent: rpcapi.Intent{SessionID: sub.s.id, AgentID: agent, RunID: sub.run.Run, ProposalID: p.ID}}
	for i := range p.Actions {
		a := &p.Actions[i]
		parameters, _ := policy.ParseParameters(a.Parameters) // what has no single meaning is rejected before it runs
		in.Actions = append(in.Actions, actionOf(a.ID, a.Type, a.Tool, parameters))
	}
	d := sub.s.d.supervision.park(ctx, in)
	return &d
}

// supervisor names what decided in verdicts, where no policy did.
const supervisor = "supervision"

// denied keeps of a proposal that a supervisor denied a verdict on each action and a turn of each tool call. It is the proposal's error.
func (sub *submission) denied(ctx context.Context, agent string, p *proposal.Proposal, why string) error {
	closed := policy.Closed(supervisor, why)
	for i := range p.Actions {
		a := &p.Actions[i]
		parameters, _ := policy.ParseParameters(a.Parameters)
		verdict := closed.Check(&policy.Action{ID: a.ID, Type: a.Type, Tool: a.Tool, Parameters: parameters}, nil, agent)
		err := sub.s.judged(ctx, sub.run, &verdict)
		if err == nil && a.Type == proposal.ToolCall {
			err = sub.done(ctx, &proposal.Outcome{Action: a, Parameters: parameters.Raw(), Verdict: &verdict, Result: new(proposal.ActionResult)})
		}
		if err != nil {
			return err
		}
	}
	return jsonrpc.Errorf(rpcapi.CodeApproval, "the proposal was not approved: %s", why)
}

// noteApproval puts into a verdict that a supervisor allowed its proposal, and why.
func noteApproval(v *policy.Verdict, d *rpcapi.Decision) {
	if d == nil || !v.Allowed {
		return
	}
	if v.Approval == nil {
		v.Approval = new(policy.Approval)
	}
	v.Approval.Policies = append([]string{supervisor}, v.Approval.Policies...)
	v.Approval.Reason = strings.Join(slices.DeleteFunc([]string{d.Reason, v.Approval.Reason}, func(s string) bool { return s == "" }), "; ")
}

// approve has a person settle a verdict that asks for one. of is who asks.
func (v *supervision) approve(ctx context.Context, of rpcapi.Intent, verdict *policy.Verdict, parameters *policy.Parameters) {
	in := &intent{Intent: of}
	in.Reason, in.Actions = verdict.Reason(), []rpcapi.IntentAction{actionOf(verdict.ActionID, verdict.Type, verdict.Tool, parameters)}
	for i := range verdict.Violations {
		in.Policies = append(in.Policies, verdict.Violations[i].PolicyName)
	}
	d := v.park(ctx, in)
	if d.Kind == rpcapi.DecisionAllow {
		verdict.Settle(true, d.Reason)
		return
	}
	verdict.Settle(false, reasonOf(&d))
}

// What a person is shown of the names of parameters.
const maxKeys, maxKey = 64, 128

func actionOf(id, kind, tool string, p *policy.Parameters) rpcapi.IntentAction {
	keys := p.Keys()
	keys = keys[:min(len(keys), maxKeys)]
	for i, k := range keys {
		if len(k) > maxKey {
			keys[i] = strings.ToValidUTF8(k[:maxKey], "") + "…"
		}
	}
	return rpcapi.IntentAction{ActionID: id, Type: kind, Tool: tool, ParameterKeys: keys, ParamsDigest: p.Digest().String()}
}

// reasonOf is a denial in words.
func reasonOf(d *rpcapi.Decision) string {
	if d.Reason == "" {
		return "a person denied it"
	}
	return "denied: " + d.Reason
}
