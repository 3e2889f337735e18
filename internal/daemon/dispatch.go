package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/proposal/toolschema"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// A method answers one request of a session.
type method struct {
	do func(ctx context.Context, s *session, r *jsonrpc.Request) (any, error)
	// inline methods are answered before the next frame is read, so that a client that does not wait for their replies finds
	// them done. They wait for nothing but the processor.
	inline bool
	// open methods may come before session.auth.
	open bool
}

// methods is the table of all. It is not changed after it was made.
var methods = map[string]method{
	rpcapi.SessionAuth:        {do: sessionAuth, inline: true, open: true},
	rpcapi.ServerHandshake:    {do: on(handshake), inline: true},
	rpcapi.SessionInit:        {do: on(sessionInit), inline: true},
	rpcapi.ToolsRegister:      {do: on(toolsRegister), inline: true},
	rpcapi.ToolsList:          {do: on(toolsList), inline: true},
	rpcapi.ToolsUnregister:    {do: on(toolsUnregister), inline: true},
	rpcapi.PolicyRegister:     {do: on(policyRegister), inline: true},
	rpcapi.PolicyUnregister:   {do: on(policyUnregister), inline: true},
	rpcapi.PolicyList:         {do: on(policyList), inline: true},
	rpcapi.PolicyCheck:        {do: on(policyCheck)},
	rpcapi.SessionPolicyOpen:  {do: on(policyOpen), inline: true},
	rpcapi.SessionPolicyClose: {do: on(policyClose), inline: true},
	rpcapi.StateGet:           {do: on(stateGet), inline: true},
	rpcapi.StateSet:           {do: on(stateSet), inline: true},
	rpcapi.StateExists:        {do: on(stateExists), inline: true},
	rpcapi.StateKeys:          {do: on(stateKeys), inline: true},
	rpcapi.StateSnapshot:      {do: on(stateSnapshot), inline: true},
	rpcapi.ProposalSubmit:     {do: proposalSubmit},
	rpcapi.RunsStart:          {do: on(runsStart)},
	rpcapi.RunsComplete:       {do: on(runsComplete)},
	rpcapi.RunsRecordTurns:    {do: runsRecordTurns},
	rpcapi.RunsSubscribe:      {do: alone(runsSubscribe)},
	rpcapi.RunsUnsubscribe:    {do: on(runsUnsubscribe)},
	rpcapi.RunsList:           {do: alone(on(runsList))},
	rpcapi.RunsGetTrace:       {do: alone(on(runsGetTrace))},
	rpcapi.RunsVerdicts:       {do: alone(on(runsVerdicts))},

	rpcapi.SupervisionSubscribe:   {do: supervisionSubscribe},
	rpcapi.SupervisionUnsubscribe: {do: on(supervisionUnsubscribe)},
	rpcapi.SupervisionPending:     {do: alone(on(supervisionPending))},
	rpcapi.SupervisionDecide:      {do: on(supervisionDecide)},
}

func init() {
	// A function of the table would otherwise refer to the table.
	isInline = func(name string) bool { return methods[name].inline }
}

var isInline func(string) bool

// on makes a method of a function that wants its params read.
func on[P any](f func(ctx context.Context, s *session, p *P) (any, error)) func(context.Context, *session, *jsonrpc.Request) (any, error) {
	return func(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
		var p P
		if err := read(r.Params, &p); err != nil {
			return nil, err
		}
		return f(ctx, s, &p)
	}
}

// readCost is what a read of runs costs its connection, in bytes, however short its reply: it looks into the index and files.
const readCost = 4 * jsonrpc.TokenBytes

// alone makes a method of one whose replies are long: of a connection one at a time is made, and the next when that one is
// queued. A client that does not read holds two of them, not as many as it may ask for.
func alone(do func(context.Context, *session, *jsonrpc.Request) (any, error)) func(context.Context, *session, *jsonrpc.Request) (any, error) {
	return func(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
		select {
		case s.long <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r.Cost = readCost
		result, err := do(ctx, s, r)
		after := r.After
		r.After = func() {
			<-s.long
			if after != nil {
				after()
			}
		}
		return result, err
	}
}

// read reads params; none and null leave p as it is.
func read(params json.RawMessage, p any) error {
	if len(params) == 0 {
		return nil
	}
	if err := unmarshal(params, p); err != nil {
		return badParams("%v", err)
	}
	return nil
}

func badParams(format string, args ...any) error {
	return jsonrpc.Errorf(rpcapi.CodeInvalidParams, "invalid params: "+format, args...)
}

func failed(format string, args ...any) error {
	return jsonrpc.Errorf(rpcapi.CodeInternal, format, args...)
}

// printable is a name of the client's as an error may show it.
func printable(name string) string {
	const most = 100
	if len(name) > most {
		name = name[:most] + "…"
	}
	var text strings.Builder
	for _, r := range name {
		if strconv.IsGraphic(r) {
			text.WriteRune(r) // quotes too: JSON escapes them where it is sent
			continue
		}
		quoted := strconv.QuoteRuneToGraphic(r)
		text.WriteString(quoted[1 : len(quoted)-1])
	}
	return text.String()
}

// unmarshal is json.Unmarshal with errors in the words of the wire: a client knows nothing of our types.
func unmarshal(raw []byte, to any) error {
	err := json.Unmarshal(raw, to)
	var other *json.UnmarshalTypeError
	if !errors.As(err, &other) {
		return err
	}
	text := fmt.Sprintf("want %s, got %s", wanted(other.Type), got(other.Value))
	if other.Field != "" {
		text = other.Field + ": " + text
	}
	return errors.New(text)
}

// lists are what their elements are called.
var lists = map[reflect.Type]string{
	reflect.TypeFor[rpcapi.Tool](): "tools", reflect.TypeFor[rpcapi.PolicyRegisterParams](): "policies",
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		if name, ok := lists[t.Elem()]; ok {
			return "an array of " + name
		}
		return "an array"
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "an object"
}

// got is a value as encoding/json calls it: array, bool, object, string, number, or number and its text.
func got(value string) string {
	switch text, isNumber := strings.CutPrefix(value, "number "); {
	case isNumber:
		return text
	case value == "bool":
		return "true or false"
	case value == "array" || value == "object":
		return "an " + value
	}
	return "a " + value
}

// tool is one that a session may call: its client's, or a built-in one.
type tool struct {
	*proposal.Tool
	info rpcapi.ToolInfo
	size int // bytes, taken from its session's room
}

const (
	maxToolName   = 256     // bytes
	maxToolSchema = 1 << 20 // bytes
)

func toolsRegister(_ context.Context, s *session, p *rpcapi.ToolsRegisterParams) (any, error) {
	made, err := s.tools.made(*p)
	if err != nil {
		return nil, err
	}
	if err := s.tools.put(made); err != nil {
		return nil, err
	}
	return len(*p), nil
}

// A toolbox has the tools that a session may call: its client's, and those of the daemon.
type toolbox struct {
	builtins map[string]*tool
	most     int // of its client's
	room     *quota

	mu   sync.Mutex
	tool map[string]*tool // its client's; guarded by mu
}

// made makes tools of their definitions, all or none.
func (s *toolbox) made(list []rpcapi.Tool) ([]*tool, error) {
	made := make([]*tool, 0, len(list))
	for i := range list {
		t, err := s.newTool(&list[i])
		if err != nil {
			return nil, badParams("tool %d%s: %v", i, named(list[i].Name), err)
		}
		made = append(made, t)
	}
	return made, nil
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return ", " + printable(name)
}

func (s *toolbox) newTool(t *rpcapi.Tool) (*tool, error) {
	switch {
	case t.Name == "" || len(t.Name) > maxToolName:
		return nil, errors.New("want a name of 1 to 256 bytes")
	case len(t.Parameters) > maxToolSchema:
		return nil, errors.New("a schema holds at most 1 MiB")
	case s.builtins[t.Name] != nil:
		return nil, errors.New("the daemon runs a tool of that name itself: take another name")
	}
	schema, err := toolschema.Compile(t.Name, t.Parameters)
	if err != nil {
		return nil, err
	}
	info := rpcapi.ToolInfo{
		Name: t.Name, Source: rpcapi.SourceClient, Description: t.Description, Parameters: orEmpty(t.Parameters), Idempotent: t.Idempotent}
	made := &proposal.Tool{
		Definition: proposal.Definition{Name: t.Name, Description: t.Description, Parameters: t.Parameters}, Call: callBack, Schema: schema}
	// A compiled schema is some times as large as its text.
	return &tool{made, info, 512 + len(t.Name) + len(t.Description) + 8*len(t.Parameters)}, nil
}

func orEmpty(object json.RawMessage) json.RawMessage {
	if len(object) == 0 || bytes.Equal(object, []byte("null")) {
		return json.RawMessage("{}")
	}
	return object
}

// put registers tools; one of the same name gives way.
func (s *toolbox) put(made []*tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := make(map[string]bool, len(made))
	for _, t := range made {
		if s.tool[t.info.Name] == nil {
			fresh[t.info.Name] = true
		}
	}
	if len(s.tool)+len(fresh) > s.most {
		return badParams("a connection has at most %d tools: unregister some", s.most)
	}
	size := 0
	for _, t := range made {
		size += t.size
	}
	if !s.room.take(size) {
		return noRoom()
	}
	if s.tool == nil {
		s.tool = make(map[string]*tool, len(made))
	}
	for _, t := range made {
		s.drop(t.info.Name)
		s.tool[t.info.Name] = t
	}
	return nil
}

// drop forgets a tool and says whether there was one. s.mu is held.
func (s *toolbox) drop(name string) bool {
	t := s.tool[name]
	if t == nil {
		return false
	}
	s.room.take(-t.size)
	delete(s.tool, name)
	return true
}

func noRoom() error {
	return failed("no room for it: what a connection, or all together, may keep of tools, policies and state is used up")
}

func toolsList(_ context.Context, s *session, _ *struct{}) (any, error) {
	b := &s.tools
	list := make([]rpcapi.ToolInfo, 0, len(b.builtins))
	b.mu.Lock()
	for _, t := range b.tool {
		list = append(list, t.info)
	}
	b.mu.Unlock()
	for _, t := range b.builtins {
		list = append(list, t.info)
	}
	slices.SortFunc(list, func(a, b rpcapi.ToolInfo) int { return cmp.Compare(a.Name, b.Name) })
	return rpcapi.ToolsListResult{Tools: list, Count: len(list)}, nil
}

func toolsUnregister(_ context.Context, s *session, p *rpcapi.ToolsUnregisterParams) (any, error) {
	if p.Name == "" {
		return nil, badParams("name is required")
	}
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	out := rpcapi.ToolsUnregisterResult{Unregistered: p.Name}
	if s.tools.drop(p.Name) {
		out.Removed = 1
	}
	return out, nil
}

// Tool implements proposal.Tools.
func (s *toolbox) Tool(name string) (*proposal.Tool, bool) {
	if t := s.builtins[name]; t != nil {
		return t.Tool, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tool[name]; t != nil {
		return t.Tool, true
	}
	return nil, false
}

func sessionInit(_ context.Context, s *session, p *rpcapi.SessionInitParams) (any, error) {
	made, err := s.tools.made(p.Tools)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.policies.clone()
	for i := range p.Policies {
		if err := s.policies.add(s.scopeOf(p.Policies[i].SessionID), &p.Policies[i]); err != nil {
			s.policies.undo(before)
			return nil, err
		}
	}
	if err := s.tools.put(made); err != nil {
		s.policies.undo(before)
		return nil, err
	}
	s.client = runtrace.Truncate(p.ClientID)
	return rpcapi.SessionInitResult{SessionID: s.id, ToolsRegistered: len(p.Tools), PoliciesRegistered: len(p.Policies)}, nil
}

func stateGet(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	if p.Key == "" {
		return nil, badParams("key is required")
	}
	return s.state.Scope(p.TenantID).Get(p.Key), nil
}

func stateSet(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	if p.Key == "" {
		return nil, badParams("key is required")
	}
	if err := s.state.Scope(p.TenantID).Set(p.Key, p.Value); err != nil {
		return nil, badParams("%v", err)
	}
	return rpcapi.StateOK, nil
}

func stateExists(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	if p.Key == "" {
		return nil, badParams("key is required")
	}
	return s.state.Scope(p.TenantID).Exists(p.Key), nil
}

func stateKeys(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	return s.state.Scope(p.TenantID).Keys(), nil
}

func stateSnapshot(_ context.Context, s *session, p *rpcapi.StateParams) (any, error) {
	return s.state.Scope(p.TenantID).Snapshot(), nil
}

// quota counts bytes that are held, up to a bound, and within those of another.
type quota struct {
	most int64
	used atomic.Int64
	up   *quota // nil for the outermost
}

// take counts n bytes more, or none and reports false where there is no room. Less than 0 gives back, and always succeeds.
func (q *quota) take(n int) bool {
	if q == nil {
		return true
	}
	if used := q.used.Add(int64(n)); n > 0 && used > q.most {
		q.used.Add(int64(-n))
		return false
	}
	if !q.up.take(n) {
		q.used.Add(int64(-n))
		return false
	}
	return true
}

// drop gives back all that is counted; nothing is taken after it.
func (q *quota) drop() { q.take(-int(q.used.Load())) }
