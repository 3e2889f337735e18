package mcp

import "encoding/json"

// acpProtocol is the Agent Client Protocol, by which an editor speaks to an agent that it starts. Its initialize names its version by a
// number. The agent tells of what it does by session/update, and asks the client for permission, for files and for terminals within
// session/prompt: these are notifications and requests of a server as MCP's are. session/cancel has the agent end what it does; its answer
// to the prompt comes behind that.
//
// An agent that is on no tape runs on a replay, as it did before there were conversations with one: what it asks of models is answered
// from the tape all the same.
var acpProtocol = protocol{
	prefix: "acp ",
	opens:  func(m *Message) bool { return acpVersion(m) != "" },
	asked:  acpVersion,
	answered: func(result json.RawMessage) string {
		return acpNumber(member(result, "protocolVersion"))
	},
	server: func(result json.RawMessage) string { return str(member(member(result, "agentInfo"), "name")) },
	counts: []string{"session/cancel"},
	runs:   true,
}

// acpVersion is the version that an initialize of ACP names, as an mcp_open has it: "acp 1"; "" for any other message.
func acpVersion(m *Message) string {
	if m.Method != methodInitialize {
		return ""
	}
	return acpNumber(member(m.Params, "protocolVersion"))
}

func acpNumber(version json.RawMessage) string {
	if len(version) == 0 || version[0] < '0' || version[0] > '9' {
		return ""
	}
	return "acp " + string(version)
}
