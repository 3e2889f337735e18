package mcp

import "os"

// A Fed is a Relay without files: the test brings what is read.
type Fed struct{ t *relay }

// NewFed returns a relay that is not decided.
func NewFed(l *Log, refuse *Refusal) *Fed {
	o := &RelayOptions{Log: l, Opened: &Opened{Transport: Stdio, Program: "server"}, Refuse: refuse}
	none, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	return &Fed{&relay{o: o, clientOut: &end{file: &endFile{f: none}}, client: lines{limit: MaxLine}, server: lines{limit: MaxLine}}}
}

// SetLimit bounds the lines.
func (f *Fed) SetLimit(n int) { f.t.client.limit, f.t.server.limit = n, n }

// From takes what was read from a side ("stderr" too) and returns what is passed on.
func (f *Fed) From(side Side, b []byte) ([]byte, error) {
	switch side {
	case Client:
		return f.t.fromClient(b)
	case Server:
		return f.t.fromServer(b)
	}
	return f.t.fromStderr(b)
}

// End says that a side has ended.
func (f *Fed) End(side Side) ([]byte, error) {
	f.t.endedBy(side)
	if side == Client {
		return f.t.clientEnded()
	}
	return f.t.serverEnded()
}

// Conversation returns the conversation; nil for none.
func (f *Fed) Conversation() *Conversation { return f.t.conversation }

// Line is what a client gets for a line.
func (r *Refusal) Line(line []byte) []byte {
	answer, _ := r.line(nil, line)
	return answer
}

// Opens reports whether a client's first line opens a conversation.
func Opens(line []byte) bool { return opening(line) != nil }

// Number is the number of the conversation on its tape.
func (c *Conversation) Number() uint64 { return c.number }
