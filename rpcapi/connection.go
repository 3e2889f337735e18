package rpcapi

// SessionAuthParams opens a connection. One of Token and HostToken is required where auth is on.
type SessionAuthParams struct {
	Token     string `json:"token,omitempty"`
	HostToken string `json:"host_token,omitempty"`
	// AgentID binds the connection to that agent: it owns the runs of this agent and of no other.
	AgentID string `json:"agent_id,omitempty"`
}

// RoleHost is the role of a connection that came with the host token: it reads every run and writes none.
const RoleHost = "host"

// SessionAuthResult is the reply to session.auth. A wrong token is CodeInternal, as the public protocol has it, and another
// session.auth may follow.
type SessionAuthResult struct {
	OK          bool   `json:"ok"`
	AuthEnabled bool   `json:"auth_enabled"`
	AgentID     string `json:"agent_id,omitempty"` // when one was bound
	Role        string `json:"role,omitempty"`     // RoleHost for the host token
}

// HandshakeParams names the version that the client speaks. What a version from 3 on cannot do without it lists as
// RequiredCapabilities.
type HandshakeParams struct {
	ProtocolVersion      int      `json:"protocol_version"` // required
	ClientVersion        string   `json:"client_version,omitempty"`
	RequiredCapabilities []string `json:"required_capabilities,omitempty"`
	OptionalCapabilities []string `json:"optional_capabilities,omitempty"`
}

// HandshakeResult is the reply to server.handshake. ProtocolVersion is the client's: every one that is accepted says the
// same about the methods here.
type HandshakeResult struct {
	ProtocolVersion       int    `json:"protocol_version"`
	ServerVersion         string `json:"server_version"`
	ClientProtocolVersion int    `json:"client_protocol_version"`
	// What follows came with version 3 and is in every reply.
	ClientVersion          string   `json:"client_version"`
	AssistantName          string   `json:"assistant_name"`
	AssistantAliases       []string `json:"assistant_aliases"`
	AssistantBrand         string   `json:"assistant_brand"`
	NegotiatedCapabilities []string `json:"negotiated_capabilities"`
}

// SessionInitParams registers tools and policies at once: all of them or, with an error, none. ClientID is what the client calls itself;
// the runs that it starts from then on keep it.
type SessionInitParams struct {
	ClientID string                 `json:"client_id,omitempty"`
	Tools    []Tool                 `json:"tools"`
	Policies []PolicyRegisterParams `json:"policies,omitempty"`
}

// SessionInitResult is the reply to session.init.
type SessionInitResult struct {
	SessionID          string `json:"session_id"`
	ToolsRegistered    int    `json:"tools_registered"`
	PoliciesRegistered int    `json:"policies_registered"`
}
