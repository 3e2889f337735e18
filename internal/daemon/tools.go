package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/proposal/toolschema"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

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
	made, err := s.newTools(*p)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.putTools(made); err != nil {
		return nil, err
	}
	return len(*p), nil
}

// newTools makes tools of their definitions, all or none.
func (s *session) newTools(list []rpcapi.Tool) ([]*tool, error) {
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

func (s *session) newTool(t *rpcapi.Tool) (*tool, error) {
	switch {
	case t.Name == "" || len(t.Name) > maxToolName:
		return nil, errors.New("want a name of 1 to 256 bytes")
	case len(t.Parameters) > maxToolSchema:
		return nil, errors.New("a schema holds at most 1 MiB")
	case s.d.builtins[t.Name] != nil:
		return nil, errors.New("the daemon runs a tool of that name itself: take another name")
	}
	schema, err := toolschema.Compile(t.Name, t.Parameters)
	if err != nil {
		return nil, err
	}
	info := rpcapi.ToolInfo{
		Name: t.Name, Source: rpcapi.SourceClient, Description: t.Description, Parameters: orEmpty(t.Parameters), Idempotent: t.Idempotent}
	made := &proposal.Tool{
		Definition: proposal.Definition{Name: t.Name, Description: t.Description, Parameters: t.Parameters}, Call: s.callBack, Schema: schema}
	// A compiled schema is some times as large as its text.
	return &tool{made, info, 512 + len(t.Name) + len(t.Description) + 8*len(t.Parameters)}, nil
}

func orEmpty(object json.RawMessage) json.RawMessage {
	if len(object) == 0 || bytes.Equal(object, []byte("null")) {
		return json.RawMessage("{}")
	}
	return object
}

// putTools registers tools; one of the same name gives way. s.mu is held.
func (s *session) putTools(made []*tool) error {
	fresh := make(map[string]bool, len(made))
	for _, t := range made {
		if s.tools[t.info.Name] == nil {
			fresh[t.info.Name] = true
		}
	}
	if len(s.tools)+len(fresh) > s.d.o.Limits.Tools {
		return badParams("a connection has at most %d tools: unregister some", s.d.o.Limits.Tools)
	}
	size := 0
	for _, t := range made {
		size += t.size
	}
	if !s.room.take(size) {
		return noRoom()
	}
	if s.tools == nil {
		s.tools = make(map[string]*tool, len(made))
	}
	for _, t := range made {
		s.dropTool(t.info.Name)
		s.tools[t.info.Name] = t
	}
	return nil
}

// dropTool forgets a tool and says whether there was one. s.mu is held.
func (s *session) dropTool(name string) bool {
	t := s.tools[name]
	if t == nil {
		return false
	}
	s.room.take(-t.size)
	delete(s.tools, name)
	return true
}

func noRoom() error {
	return failed("no room for it: what a connection, or all together, may keep of tools, policies and state is used up")
}

func toolsList(_ context.Context, s *session, _ *struct{}) (any, error) {
	s.mu.Lock()
	list := make([]rpcapi.ToolInfo, 0, len(s.tools)+len(s.d.builtins))
	for _, t := range s.tools {
		list = append(list, t.info)
	}
	s.mu.Unlock()
	for _, t := range s.d.builtins {
		list = append(list, t.info)
	}
	slices.SortFunc(list, func(a, b rpcapi.ToolInfo) int { return cmp.Compare(a.Name, b.Name) })
	return rpcapi.ToolsListResult{Tools: list, Count: len(list)}, nil
}

func toolsUnregister(_ context.Context, s *session, p *rpcapi.ToolsUnregisterParams) (any, error) {
	if p.Name == "" {
		return nil, badParams("name is required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := rpcapi.ToolsUnregisterResult{Unregistered: p.Name}
	if s.dropTool(p.Name) {
		out.Removed = 1
	}
	return out, nil
}

// Tool makes a session the proposal.Tools of its submissions.
func (s *session) Tool(name string) (*proposal.Tool, bool) {
	if t := s.d.builtins[name]; t != nil {
		return t.Tool, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tools[name]; t != nil {
		return t.Tool, true
	}
	return nil, false
}

func sessionInit(_ context.Context, s *session, p *rpcapi.SessionInitParams) (any, error) {
	made, err := s.newTools(p.Tools)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.policies.clone()
	for i := range p.Policies {
		if err := s.addPolicy(&p.Policies[i]); err != nil {
			s.undoPolicies(before)
			return nil, err
		}
	}
	if err := s.putTools(made); err != nil {
		s.undoPolicies(before)
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
