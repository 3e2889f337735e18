package sessionlog

// ToolArgumentRepaired says that arguments were no JSON as the model wrote them, and what was made of them.
type ToolArgumentRepaired struct {
	Common
	Tool              string `json:"tool"`
	OriginalArguments string `json:"original_arguments"`
	RepairedArguments string `json:"repaired_arguments"`
}

// PermissionRequested asks whether a tool may run.
type PermissionRequested struct {
	Common
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Reason    string `json:"reason,omitempty"`
}

// PermissionResolved answers that: responder is "user" or "policy_gate".
type PermissionResolved struct {
	Common
	Approved  bool   `json:"approved"`
	Responder string `json:"responder"`
}

// ToolDenied says that a call was not made.
type ToolDenied struct {
	Common
	CallID   string `json:"call_id"`
	ToolName string `json:"tool_name"`
	Reason   string `json:"reason"`
}

// ToolGated says that a call waits for leave.
type ToolGated struct {
	Common
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// CapabilityChanged says what a model can call from here on, and no more.
type CapabilityChanged struct {
	Common
	Added        []string `json:"added"`
	Removed      []string `json:"removed"`
	ChangeKind   string   `json:"change_kind,omitempty"`
	CapabilityID string   `json:"capability_id,omitempty"`
	Version      string   `json:"version,omitempty"`
	MountedBy    string   `json:"mounted_by,omitempty"`
	MountReason  string   `json:"mount_reason,omitempty"`
}
