package sessionlog

// ToolArgumentRepaired says that arguments were no JSON as the model wrote them, and what was made of them.
type ToolArgumentRepaired struct {
	Common
	Tool              string
	OriginalArguments string
	RepairedArguments string
}

// Kind implements Event.
func (*ToolArgumentRepaired) Kind() Kind { return KindToolArgumentRepaired }

func (e *ToolArgumentRepaired) fields(c *codec) {
	e.begin(c, required)
	c.text("tool", &e.Tool, required)
	c.text("original_arguments", &e.OriginalArguments, required)
	c.text("repaired_arguments", &e.RepairedArguments, required)
	e.end(c)
}

// PermissionRequested asks whether a tool may run.
type PermissionRequested struct {
	Common
	Tool      string
	Arguments string
	Reason    string
}

// Kind implements Event.
func (*PermissionRequested) Kind() Kind { return KindPermissionRequested }

func (e *PermissionRequested) fields(c *codec) {
	e.begin(c, required)
	c.text("tool", &e.Tool, required)
	c.text("arguments", &e.Arguments, required)
	c.text("reason", &e.Reason, optional)
	e.end(c)
}

// PermissionResolved answers that: responder is "user" or "policy_gate".
type PermissionResolved struct {
	Common
	Approved  bool
	Responder string
}

// Kind implements Event.
func (*PermissionResolved) Kind() Kind { return KindPermissionResolved }

func (e *PermissionResolved) fields(c *codec) {
	e.begin(c, required)
	c.yes("approved", &e.Approved, required)
	c.text("responder", &e.Responder, required)
	e.end(c)
}

// ToolDenied says that a call was not made.
type ToolDenied struct {
	Common
	CallID   string
	ToolName string
	Reason   string
}

// Kind implements Event.
func (*ToolDenied) Kind() Kind { return KindToolDenied }

func (e *ToolDenied) fields(c *codec) {
	e.begin(c, required)
	c.text("call_id", &e.CallID, required)
	c.text("tool_name", &e.ToolName, required)
	c.text("reason", &e.Reason, required)
	e.end(c)
}

// ToolGated says that a call waits for leave.
type ToolGated struct {
	Common
	CallID string
	Tool   string
	Reason string
}

// Kind implements Event.
func (*ToolGated) Kind() Kind { return KindToolGated }

func (e *ToolGated) fields(c *codec) {
	e.begin(c, required)
	c.text("call_id", &e.CallID, required)
	c.text("tool", &e.Tool, required)
	c.text("reason", &e.Reason, required)
	e.end(c)
}

// CapabilityChanged says what a model can call from here on, and no more.
type CapabilityChanged struct {
	Common
	Added        []string
	Removed      []string
	ChangeKind   string
	CapabilityID string
	Version      string
	MountedBy    string
	MountReason  string
}

// Kind implements Event.
func (*CapabilityChanged) Kind() Kind { return KindCapabilityChanged }

func (e *CapabilityChanged) fields(c *codec) {
	e.begin(c, required)
	c.texts("added", &e.Added, required)
	c.texts("removed", &e.Removed, required)
	c.text("change_kind", &e.ChangeKind, optional)
	c.text("capability_id", &e.CapabilityID, optional)
	c.text("version", &e.Version, optional)
	c.text("mounted_by", &e.MountedBy, optional)
	c.text("mount_reason", &e.MountReason, optional)
	e.end(c)
}
