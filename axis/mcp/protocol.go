package mcp

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A protocol is one that is spoken by messages of JSON-RPC over stdio: what of a conversation JSON-RPC does not tell. Everything else is the
// same to all of them.
type protocol struct {
	// prefix begins the version that an mcp_open names; "" is MCP's.
	prefix string
	// opens reports whether a client begins with such a request.
	opens func(m *Message) bool
	// asked is the version that a client names in a request; "" for none.
	asked func(m *Message) string
	// answered is the version that the answer to initialize names, and server what the server calls itself in the answer to the first request.
	answered func(result json.RawMessage) string
	server   func(result json.RawMessage) string
	// counts are the notifications of the client that what the server says behind them waits for.
	counts []string
	// runs says that a server which is on no tape runs on a replay. Else its client gets an error.
	runs bool
}

// protocols are those that are known. What is of none is MCP's where that matters: other producers record it so.
var protocols = []*protocol{&mcpProtocol, &acpProtocol}

var mcpProtocol = protocol{
	opens:    opensMCP,
	asked:    modernVersion,
	answered: func(result json.RawMessage) string { return str(member(result, "protocolVersion")) },
	server: func(result json.RawMessage) string {
		if name := str(member(member(result, "serverInfo"), "name")); name != "" {
			return name
		}
		return str(member(member(member(result, "_meta"), metaPrefix+"serverInfo"), "name"))
	},
	counts: []string{notedInitialized},
}

// Methods that open a conversation.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
)

// opening is the protocol whose conversation a client's first line opens; nil for none. MCP is opened by `initialize` of any version, or by
// what versions without it begin with, server/discover or a request that names its version itself; ACP by its initialize. Editors speak
// JSON-RPC to other things, whose initialize names no version.
func opening(line []byte) *protocol {
	messages, _, err := Parse(line)
	if err != nil {
		return nil
	}
	for i := range messages {
		if p := speaks(&messages[i]); p != nil {
			return p
		}
	}
	return nil
}

// speaks is the protocol that a client begins to speak with a message; nil for none.
func speaks(m *Message) *protocol {
	i := slices.IndexFunc(protocols, func(p *protocol) bool { return m.IsRequest() && p.opens(m) })
	if i < 0 {
		return nil
	}
	return protocols[i]
}

// protocol is that of a recorded conversation.
func (r *Recorded) protocol() *protocol {
	for _, p := range protocols {
		if p.prefix != "" && strings.HasPrefix(r.Protocol, p.prefix) {
			return p
		}
	}
	return &mcpProtocol
}

func opensMCP(m *Message) bool {
	switch m.Method {
	case methodInitialize:
		return m.initializes()
	case methodDiscover:
		return true
	}
	return modernVersion(m) != ""
}

// initializes reports whether an initialize is MCP's.
func (m *Message) initializes() bool {
	if version := member(m.Params, "protocolVersion"); version != nil {
		return version[0] == '"'
	}
	return isObject(member(m.Params, "clientInfo")) && isObject(member(m.Params, "capabilities"))
}

func isObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }

// modernVersion is the version that a request names in its _meta; "" for none.
func modernVersion(m *Message) string {
	return str(member(member(m.Params, "_meta"), metaPrefix+"protocolVersion"))
}

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

// maxHeld is how many records wait for the server to tell its name.
const maxHeld = 256

// naming finds out what a server is called. Until then what is recorded of its conversation waits.
type naming struct {
	speaks           *protocol // nil before the first request
	server, protocol string
	opened           bool // mcp_open is on the tape
	held             []heldRecord
}

// A heldRecord waits for the server's name.
type heldRecord struct {
	kind tape.Kind
	raw  []tape.RawBytes
}

// done reports whether the name is known.
func (n *naming) done() bool { return n.server != "" }

// asked looks at a request: the first tells what is spoken, and one of a version without initialize names its version itself.
func (n *naming) asked(m *Message) {
	if n.speaks == nil {
		n.speaks = cmp.Or(speaks(m), &mcpProtocol)
	}
	if n.protocol == "" {
		n.protocol = n.speaks.asked(m)
	}
}

// learnName looks for the server's name in the answer of a call that the client made.
func (c *Conversation) learnName(k *openCall, m *Message) {
	name := c.naming.speaks.server(m.Result)
	switch method := k.record.Method; {
	case method == methodInitialize:
		c.naming.protocol = c.naming.speaks.answered(m.Result)
	case name != "":
	case method == methodDiscover && m.Result == nil: // initialize follows
		return
	case c.calls.has(methodInitialize, methodDiscover):
		return
	}
	c.name(name)
}

// name settles the server's name, "" for one that does not tell it, and writes what waited for it.
func (c *Conversation) name(server string) {
	if !c.naming.done() {
		if server, _ = tape.SafeString(c.log.str(server)); server == "" {
			server = c.opened.name()
		}
		c.naming.server = c.log.name(server)
	}
	c.open()
}

// open writes the record that a conversation begins with, and what waited for it.
func (c *Conversation) open() {
	if c.naming.opened {
		return
	}
	c.naming.opened = true
	o := &c.opened
	c.write(&tape.MCPOpen{
		Conversation: c.number, Transport: o.Transport, Program: o.Program, Args: o.Args, Env: o.given, Cwd: o.Cwd, URL: o.URL,
		Protocol: c.log.str(c.naming.protocol), Extra: append(tape.NumberField(tape.WithinKey, o.Within), tape.NumberField(tape.PIDKey, uint64(o.PID))...),
	}, c.raw)
	for _, h := range c.naming.held {
		c.write(h.kind, h.raw)
	}
	c.naming.held = nil
}

// write records k under the server's name, or keeps it until that is known. Its error is the recorder's.
func (c *Conversation) write(k tape.Kind, raw []tape.RawBytes) {
	if !c.naming.done() {
		c.naming.held = append(c.naming.held, heldRecord{k, raw})
		if len(c.naming.held) >= maxHeld {
			c.name("")
		}
		return
	}
	c.open()
	*tape.ServerOf(k) = c.naming.server
	_ = c.log.rec.RecordRaw(k, raw)
}

// name is what a conversation is called whose server does not say: by the base of its program and its first argument that is no
// flag, or by its URL without the query.
func (o *Opened) name() string {
	if o.Transport == HTTP {
		if u, err := url.Parse(o.URL); err == nil {
			u.RawQuery, u.Fragment, u.User = "", "", nil
			return u.String()
		}
		before, _, _ := strings.Cut(o.URL, "?")
		return before
	}
	name := filepath.Base(o.Program)
	for _, a := range o.Args {
		if !strings.HasPrefix(a, "-") {
			return name + " " + a
		}
	}
	return name
}
