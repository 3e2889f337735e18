package daemon

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

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
