package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// session is one connection: who it is, its tools, policies and state, and which runs it holds open. All of it but the runs
// ends with the connection.
type session struct {
	d      *Daemon
	id     string
	conn   *jsonrpc.Conn
	stream jsonrpc.Stream // of conn
	log    *slog.Logger
	state  *proposal.State
	room   *quota        // bytes of tools, policies, state and results
	long   chan struct{} // holds one while a long reply is made: see alone
	authed atomic.Bool   // who.authed, for the gate before every request

	tools   toolbox
	subs    subscriptions
	repeats repeats // submissions that may come again

	mu       sync.Mutex
	who      identity
	attempts int    // wrong tokens so far
	client   string // what its client calls itself; "" for nothing
	policies scopes
	held     map[string]runtrace.ID // open runs that it started, by run id; nil when the session is over
	current  runtrace.ID            // the run whose turns its tool calls become; zero is none
}

func newSession(d *Daemon, stream jsonrpc.Stream, log *slog.Logger) *session {
	s := &session{
		d: d, id: "sess-" + newUUID(), stream: stream, long: make(chan struct{}, 1), room: &quota{most: int64(d.o.Limits.SessionBytes), up: d.room},
		held: make(map[string]runtrace.ID),
	}
	s.log = log.With("session", s.id)
	s.state, s.repeats.room = &proposal.State{Room: s.room.take}, s.room
	s.tools = toolbox{builtins: d.builtins, most: d.o.Limits.Tools, room: s.room}
	s.policies.most, s.policies.room = d.o.Limits.Policies, s.room
	s.who.open = d.o.NoAuth
	s.authed.Store(d.o.NoAuth)
	stream.Short(!d.o.NoAuth) // who may be anybody takes no memory from those who are known
	s.conn = jsonrpc.New(stream, &jsonrpc.Options{
		Handler: s.handle, Inline: isInline, Limits: d.wireLimits(), Budget: d.budget, Logger: s.log,
		Meter: d.meter(),
	})
	s.subs = subscriptions{d: d, conn: s.conn, byRun: make(map[string]*subscription)}
	return s
}

// serve converses until the connection ends or ctx does. When it returns nothing of the session runs any more, and its runs
// are in their grace.
func (s *session) serve(ctx context.Context) error {
	stop := s.expectAuth()
	err := s.conn.Serve(ctx)
	stop()
	s.d.supervision.watch(s, nil).stop()
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	s.subs.stop()
	for _, id := range held {
		s.d.runs.release(id, s)
	}
	s.room.drop()
	return err
}

// scopeOf is the scope of policies that a client names: the id that session.init gave is the connection's own.
func (s *session) scopeOf(id string) string {
	if id == s.id {
		return ""
	}
	return id
}

// storeFailed says in the log what failed and why, and to the client what. That the client went away meanwhile is no failure.
func (s *session) storeFailed(what, run string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	s.log.Error(what, "run", run, "error", err)
	return failed("%s: the daemon's store failed, and its log says why", what)
}

const (
	// maxAttempts is how many wrong tokens a connection may try; the last one closes it.
	maxAttempts = 5
	// authWithin is how long a connection may be open without one.
	authWithin = 30 * time.Second
)

// sessionAuth lets a connection in. It is answered before the next frame is read, so that a client that does not wait for the
// reply is in nevertheless.
func sessionAuth(_ context.Context, s *session, r *jsonrpc.Request) (any, error) {
	var p rpcapi.SessionAuthParams
	if err := read(r.Params, &p); err != nil {
		return nil, err
	}
	if p.AgentID != "" {
		if err := runtrace.CheckName("agent_id", p.AgentID); err != nil {
			return nil, badParams("%v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	host, err := s.admits(&p)
	if err != nil {
		return nil, err
	}
	if s.who.authed && (s.who.host != host || s.who.bound != p.AgentID && p.AgentID != "") {
		return nil, failed("auth failed: this connection is somebody else already: open another")
	}
	s.who.authed, s.who.host = true, host
	if p.AgentID != "" {
		s.who.bound = p.AgentID
	}
	s.authed.Store(true)
	s.stream.Short(false) // inline: nobody reads meanwhile
	out := rpcapi.SessionAuthResult{OK: true, AuthEnabled: !s.who.open, AgentID: s.who.bound}
	if host {
		out.Role, out.AgentID = rpcapi.RoleHost, ""
	}
	return out, nil
}

// admits compares tokens. s.mu is held.
func (s *session) admits(p *rpcapi.SessionAuthParams) (host bool, err error) {
	if s.who.open {
		return false, nil
	}
	if s.attempts < maxAttempts {
		switch {
		case p.HostToken != "" && token.Equal(s.d.tokens.Host, p.HostToken):
			return true, nil
		case p.HostToken == "" && token.Equal(s.d.tokens.Agent, p.Token):
			return false, nil
		}
	}
	s.attempts++
	s.d.metrics.refused.With("token").Inc()
	s.log.Warn("wrong token", "attempt", s.attempts)
	wrong := jsonrpc.Errorf(rpcapi.CodeInternal, "auth failed: token mismatch")
	if s.attempts >= maxAttempts {
		return false, &jsonrpc.Fatal{Err: wrong, Code: jsonrpc.ClosePolicy, Reason: "too many wrong tokens"}
	}
	return false, wrong
}

// expectAuth closes a connection that does not say who it is. The caller calls what it returns when the connection is over.
func (s *session) expectAuth() (stop func() bool) {
	if s.who.open {
		return func() bool { return true }
	}
	return time.AfterFunc(authWithin, func() {
		if !s.authed.Load() {
			s.d.metrics.refused.With("auth_late").Inc()
			s.conn.Close(jsonrpc.ClosePolicy, "auth required")
		}
	}).Stop
}

// handshakeParams are rpcapi.HandshakeParams of which nothing is certain yet.
type handshakeParams struct {
	ProtocolVersion any    `json:"protocol_version"`
	ClientVersion   string `json:"client_version"`
	Required        []any  `json:"required_capabilities"`
	Optional        []any  `json:"optional_capabilities"`
}

// granted are the capabilities of the public protocol that its clients of version 3 ask for before they do anything. They are
// about what infer and models calls answer, and there are none here: what they promise holds.
var granted = []string{"infer.model-identity.v1", "models.catalog-identity.v1"}

func handshake(_ context.Context, _ *session, p *handshakeParams) (any, error) {
	n, number := p.ProtocolVersion.(float64)
	v := int(n)
	if !number || float64(v) != n || v < rpcapi.MinProtocolVersion || v > rpcapi.MaxProtocolVersion {
		return nil, jsonrpc.Errorf(rpcapi.CodeVersion, "protocol version mismatch: this daemon speaks %d to %d, the client asks for %v",
			rpcapi.MinProtocolVersion, rpcapi.MaxProtocolVersion, printable(describe(p.ProtocolVersion)))
	}
	agreed := []string{}
	for _, c := range slices.Concat(p.Required, p.Optional) {
		if name, ok := c.(string); ok && slices.Contains(granted, name) && !slices.Contains(agreed, name) {
			agreed = append(agreed, name)
		}
	}
	for _, c := range p.Required {
		if name, _ := c.(string); !slices.Contains(granted, name) {
			return nil, jsonrpc.Errorf(rpcapi.CodeCapability, "protocol capability mismatch: this daemon has no %s", printable(describe(c)))
		}
	}
	slices.Sort(agreed)
	client := p.ClientVersion
	if client == "" {
		client = "unknown"
	}
	return rpcapi.HandshakeResult{
		ProtocolVersion: v, ServerVersion: version.Version, ClientProtocolVersion: v, ClientVersion: client[:min(len(client), 64)],
		AssistantName: "Tapedeck", AssistantAliases: []string{}, AssistantBrand: "Tapedeck", NegotiatedCapabilities: agreed,
	}, nil
}

// describe is any JSON value as an error may show it.
func describe(v any) string {
	b, _ := json.Marshal(v) // which came from JSON
	return string(b)
}

// identity is who a connection is. Its session guards it.
//
//	auth on   host token         host: reads everything, writes nothing
//	          token, agent_id    bound: that agent
//	          token              the agents under which it started runs on this connection
//	auth off  agent_id           bound: that agent, and those as which it started runs nevertheless
//	          nothing            what it started, once it started a run; before that it reads everything
type identity struct {
	authed  bool     // may call anything but session.auth
	open    bool     // auth is off
	host    bool     // came with the host token
	bound   string   // the agent it is, or ""
	started []string // the agents under which it started runs; at most Limits.Runs
}

// owns says whether runs of an agent are its own, to read and to write.
func (i *identity) owns(agent string) bool {
	return !i.host && agent != "" && (i.bound == agent || slices.Contains(i.started, agent))
}

// readsAll says whether it reads the runs of every agent.
func (i *identity) readsAll() bool {
	return i.host || i.open && i.bound == "" && len(i.started) == 0
}

func (i *identity) reads(agent string) bool { return i.readsAll() || i.owns(agent) }

// may says whether it may start a run as agent.
func (i *identity) may(agent string) bool {
	return !i.host && (i.open || i.bound == "" || i.bound == agent)
}

// start notes that it started a run as agent.
func (i *identity) start(agent string) {
	if i.bound != agent && !slices.Contains(i.started, agent) {
		i.started = append(i.started, agent)
	}
}

// turnOf makes a turn of a tool call that ended, as the tables of spec/agent-daemon.md have it:
//
//	drive_cli        prompt is parameters.prompt; cli_outcome from the output; not_run
//	check_outcome    pass or fail from the output's passed
//	any other        tool, parameters, output; not_run
//	rejected by      policy_rejected names the policies; no output, no cli_outcome, not_run
//	 policies
//
// A call that failed, ran out of time or was refused before any policy judged it has no output, whatever the tool, and error says
// why.
func turnOf(o *proposal.Outcome) runtrace.Turn {
	tool := o.Action.Tool
	t := runtrace.Turn{Tool: &tool, Parameters: o.Parameters, VerifierVerdict: runtrace.VerdictNotRun}
	if tool == driveCLI {
		t.Prompt = textMember(o.Parameters, "prompt")
	}
	if o.Verdict != nil && !o.Verdict.Allowed {
		t.PolicyRejected = policyRejected(o)
		fit(&t)
		return t
	}
	if o.Result.Status == proposal.Succeeded {
		t.Output = o.Result.Output
	} else {
		t.Error = o.Result.Error
	}
	switch tool {
	case driveCLI:
		t.CLIOutcome = cliOutcome(t.Output, o.TimedOut)
	case checkOutcome:
		t.VerifierVerdict = verifierVerdict(t.Output)
	}
	fit(&t)
	return t
}

// fit gives up what a turn is too long for, rather than the turn. Only what is long is looked at: to see whether it fits costs
// as much as to write it.
func fit(t *runtrace.Turn) {
	size := len(t.Parameters) + len(t.Output)
	if t.Prompt != nil {
		size += 6 * len(*t.Prompt) // as many bytes as an escape has
	}
	if size > runtrace.MaxLine/4 || t.PolicyRejected != nil || t.Error != nil {
		t.Fit()
	}
}

// policyRejected names every policy that stood against an action.
func policyRejected(o *proposal.Outcome) *runtrace.PolicyRejected {
	var rules, reasons []string
	r := &runtrace.PolicyRejected{}
	for i := range o.Verdict.Violations {
		v := &o.Verdict.Violations[i]
		rules, reasons = append(rules, v.PolicyName), append(reasons, v.Reason)
		if r.Param == nil && v.Param != "" {
			r.Param = &v.Param
		}
	}
	r.Rule = runtrace.Truncate(strings.Join(rules, ", "))
	r.Reason = runtrace.Truncate(strings.Join(reasons, "; "))
	return r
}

// cliOutcome reads how a command line ended from what the tool said. nil is not known.
func cliOutcome(output json.RawMessage, deadline bool) *runtrace.CLIOutcome {
	if deadline {
		return runtrace.TimedOut()
	}
	code, has := 0, false
	out := (*runtrace.CLIOutcome)(nil)
	members(output, func(s *jsonscan.Scanner, key string) {
		raw := s.Raw()
		switch key {
		case "timed_out":
			if string(raw) == "true" {
				out = runtrace.TimedOut()
			}
		case "exit_code", "code", "exitCode", "returncode":
			if n, ok := integer(raw); ok && (!has || key == "exit_code") {
				code, has = n, true
			}
		}
	})
	if out == nil && has {
		out = runtrace.Exited(code)
	}
	return out
}

func verifierVerdict(output json.RawMessage) string {
	verdict := runtrace.VerdictNotRun
	members(output, func(s *jsonscan.Scanner, key string) {
		raw := s.Raw()
		if key != "passed" {
			return
		}
		switch string(raw) {
		case "true":
			verdict = runtrace.VerdictPass
		case "false":
			verdict = runtrace.VerdictFail
		}
	})
	return verdict
}

// members calls f for each member of an object, whose value f reads; of anything else for none.
func members(raw json.RawMessage, f func(s *jsonscan.Scanner, key string)) {
	var s jsonscan.Scanner
	s.Reset(raw)
	if s.Peek() != '{' {
		return
	}
	for s.Begin('{'); s.More('}'); {
		f(&s, string(s.Key()))
	}
}

// textMember is a string of an object; nil when there is none.
func textMember(raw json.RawMessage, name string) *string {
	var out *string
	members(raw, func(s *jsonscan.Scanner, key string) {
		if key != name || s.Peek() != '"' {
			s.Skip()
			return
		}
		text := s.Text()
		out = &text
	})
	return out
}

func integer(raw []byte) (int, bool) {
	var s jsonscan.Scanner
	s.Reset(raw)
	n := jsonscan.Integer[int](&s)
	return n, s.End() == nil
}

// supervises refuses who may not decide what agents do: with tokens everybody but the host.
func (s *session) supervises() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.who.host || s.who.open {
		return nil
	}
	return failed("supervision is for the host: sign in with the host's token")
}

// handle is the jsonrpc.Handler of a session.
func (s *session) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	m, known := methods[r.Method]
	if !m.open && !s.authed.Load() {
		s.d.metrics.refused.With("auth_required").Inc()
		return nil, &jsonrpc.Fatal{
			Err:  jsonrpc.Errorf(rpcapi.CodeAuthRequired, "auth required: call %s first", rpcapi.SessionAuth),
			Code: jsonrpc.ClosePolicy, Reason: "auth required",
		}
	}
	if !known {
		return nil, jsonrpc.Errorf(rpcapi.CodeMethodNotFound, "unknown method: %s", printable(r.Method))
	}
	return m.do(ctx, s, r)
}

// listed is the agent whose runs are listed; "" is all.
func (s *session) listed(agent string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if agent == "" {
		if s.who.readsAll() {
			return "", nil
		}
		if agent = s.agent(); agent == "" {
			return "", badParams("agent_id is required")
		}
	}
	if err := runtrace.CheckName("agent_id", agent); err != nil {
		return "", badParams("%v", err)
	}
	if !s.who.reads(agent) {
		return "", failed("agent_id is not this connection's own")
	}
	return agent, nil
}
