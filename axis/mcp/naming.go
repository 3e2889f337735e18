package mcp

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

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
func (c *Conversation) learnName(k *openCall, m *Message) error {
	name := c.naming.speaks.server(m.Result)
	switch method := k.record.Method; {
	case method == methodInitialize:
		c.naming.protocol = c.naming.speaks.answered(m.Result)
	case name != "":
	case method == methodDiscover && m.Result == nil: // initialize follows
		return nil
	case c.calls.has(methodInitialize, methodDiscover):
		return nil
	}
	return c.name(name)
}

// name settles the server's name, "" for one that does not tell it, and writes what waited for it.
func (c *Conversation) name(server string) error {
	if c.naming.done() {
		return c.open()
	}
	if server, _ = tape.SafeString(c.log.str(server)); server == "" {
		server = c.opened.name()
	}
	c.naming.server = c.log.name(server)
	return c.open()
}

// open writes the record that a conversation begins with, and what waited for it.
func (c *Conversation) open() error {
	if c.naming.opened {
		return nil
	}
	c.naming.opened = true
	o := &c.opened
	err := c.write(&tape.MCPOpen{
		Conversation: c.number, Transport: o.Transport, Program: o.Program, Args: o.Args, Env: o.given, Cwd: o.Cwd, URL: o.URL,
		Protocol: c.log.str(c.naming.protocol), Extra: append(tape.NumberField(tape.WithinKey, o.Within), tape.NumberField(tape.PIDKey, uint64(o.PID))...),
	}, c.raw)
	for _, h := range c.naming.held {
		if err == nil {
			err = c.write(h.kind, h.raw)
		}
	}
	c.naming.held = nil
	return err
}

// write records k under the server's name, or keeps it until that is known.
func (c *Conversation) write(k tape.Kind, raw []tape.RawBytes) error {
	if !c.naming.done() {
		c.naming.held = append(c.naming.held, heldRecord{k, raw})
		if len(c.naming.held) < maxHeld {
			return nil
		}
		return c.name("")
	}
	if err := c.open(); err != nil {
		return err
	}
	*tape.ServerOf(k) = c.naming.server
	return c.log.rec.RecordRaw(k, raw)
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
