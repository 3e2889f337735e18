package testbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/arrival"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// tools is the run's MCP servers: each request is answered by a recorded one, and recorded.
type tools struct {
	*core

	book *toolBook // nil denies

	mu       sync.Mutex
	arrivals map[string]*arrival.Counter // by server: the ids on the tape
}

// openMCP says what answers calls of MCP tools.
func openMCP(b *core) (*tools, error) {
	t := &tools{core: b, arrivals: make(map[string]*arrival.Counter)}
	var err error
	switch {
	case b.from != nil:
		t.book, err = newToolBook(b.from.all(), b.from.store, b.secrets.clean, b.from.foreign)
		if err != nil {
			return nil, fmt.Errorf("testbench: the tape to replay: %s: %w", b.from.path, err)
		}
	case b.conf.MCP != "":
		if t.book, err = readToolBook(b.conf.MCP, b.secrets.clean); err != nil {
			return nil, &ConfigError{"MCP", err}
		}
		b.unused = append(b.unused, t.book.unused)
	}
	return t, nil
}

// readToolBook reads what a recording or a tape says of MCP servers.
func readToolBook(path string, clean func([]byte) []byte) (*toolBook, error) {
	path = TapePath(path)
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	book, err := newToolBook(f.Records(), f.Store, clean, false)
	if err == nil && len(book.calls) == 0 {
		err = errors.New("it holds no request to an MCP server")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return book, nil
}

// A ToolError is an error that an MCP server answered with.
type ToolError struct {
	Server  string
	Method  string
	Code    int64
	Message string
	Data    json.RawMessage // nil for none
}

// Error implements error.
func (e *ToolError) Error() string {
	return fmt.Sprintf("mcp: %s: %s: %s (code %d)", e.Server, e.Method, e.Message, e.Code)
}

// toolError reads the error that a server answered with.
func toolError(server, tool string, text json.RawMessage) *ToolError {
	var e struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		e.Message = string(text)
	}
	return &ToolError{Server: server, Method: methodCall + " " + tool, Code: e.Code, Message: e.Message, Data: e.Data}
}

// toolParams are the params of a call, keys in the protocol's order.
func toolParams(tool string, arguments any) (json.RawMessage, error) {
	name, err := jsonscan.Marshal(tool)
	if err != nil {
		return nil, err
	}
	args := []byte("{}")
	if arguments != nil {
		if args, err = jsonscan.Marshal(arguments); err != nil {
			return nil, err
		}
	}
	if string(args) == "null" {
		args = []byte("{}")
	}
	if args[0] != '{' {
		return nil, fmt.Errorf("want an object, got %.40s", args)
	}
	return fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, name, args), nil
}

// ask asks a server. The error is a *RefusedError, the context's, that a recorded request had no answer, or that of a tape.
func (t *tools) ask(ctx context.Context, server, method string, params json.RawMessage) (*mcp.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mcp: %s: %s: %w", server, method, err)
	}
	if err := t.watch.gate(); err != nil {
		return nil, err
	}
	c, err := t.find(server, method, params)
	if err != nil {
		return nil, err
	}
	a, err := c.answer(t.book.store)
	if err != nil {
		err = fmt.Errorf("mcp: %s: %s: record %d of the tape: %w", server, method, c.seq, err)
		t.watch.lose(err)
		return nil, err
	}
	x := toolExchange{server: server, method: method, params: params, id: t.of(server).Ask(), call: c, answer: a}
	waited := t.wait(ctx, c.kind.LatencyMS) // the answer is used up all the same
	if err := t.recorded(&x); err != nil {
		return nil, err
	}
	switch {
	case waited != nil:
		return nil, fmt.Errorf("mcp: %s: %s: %w", server, method, waited)
	case a == nil:
		return nil, fmt.Errorf("mcp: %s: %s: it got no answer when it was recorded: %s", server, method, c.kind.Error)
	}
	return a, nil
}

// find takes the recorded request that answers.
func (t *tools) find(server, method string, params json.RawMessage) (*toolCall, error) {
	c, err := t.take(server, method, params)
	if err == nil {
		return c, nil
	}
	return nil, t.watch.see(err, func() tape.Kind {
		p := t.payload(request(strconv.AppendUint(nil, t.of(server).Ask(), 10), method, params))
		if p == nil {
			p = tape.PayloadOf(cas.Digest{}, 0)
		}
		return &tape.MCPJSONRPC{Server: server, Method: method, Request: p, RequestDigest: p.Hash}
	})
}

func (t *tools) take(server, method string, params json.RawMessage) (*toolCall, error) {
	if t.book == nil {
		return nil, deniedTools(server, method, params)
	}
	return t.book.take(server, method, params)
}

func deniedTools(server, method string, params json.RawMessage) error {
	return &RefusedError{
		Axis: "mcp", Asked: fmt.Sprintf("denied: %s of %s", wanted(method, params), server),
		Next: "a testbench starts no MCP server; give a recording of one (--mcp REC, Config.MCP), which `tapedeck record` and `tapedeck mcp wrap` make",
	}
}

// of counts the requests to a server. The id of one is its place.
func (t *tools) of(server string) *arrival.Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.arrivals[server]
	if c == nil {
		c = new(arrival.Counter)
		t.arrivals[server] = c
	}
	return c
}

func (t *tools) wait(ctx context.Context, ms int64) error {
	if ms <= 0 {
		return nil
	}
	return t.core.wait(ctx, time.Duration(ms)*time.Millisecond)
}

// request is a request as it stands on the tape.
func request(id []byte, method string, params json.RawMessage) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	name, _ := jsonscan.Marshal(method) // a string always has a form
	b = append(append(b, `,"method":`...), name...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// A toolExchange is a request and what came of it.
type toolExchange struct {
	server, method string
	params         json.RawMessage
	id             uint64
	call           *toolCall    // which answers
	answer         *mcp.Message // nil where it got none
}

// recorded is the hook: so small that it stands where it is called.
func (t *tools) recorded(x *toolExchange) error {
	if t.rec == nil {
		return nil
	}
	return t.record(x)
}

// record writes what was asked and what came, in the seven keys that every producer of the format has. Where answers have come in
// another order than requests were made, it says which it was of its server.
func (t *tools) record(x *toolExchange) error {
	k := &tape.MCPJSONRPC{Server: x.server, Method: x.method, LatencyMS: x.call.kind.LatencyMS, Error: x.call.kind.Error}
	k.Arrival = t.of(x.server).Write(x.id)
	if err := t.messages(k, x); err != nil {
		return err
	}
	return t.rec.Record(k)
}

// codeNoMethod is the code of JSON-RPC for a method that a server does not have.
const codeNoMethod = -32601

// madeUp is the answer to what every server answers alike, or to a client's first request where no tape says how the server answered it;
// nil for none. It stands on no tape.
func (t *tools) madeUp(server, method string, params json.RawMessage) *mcp.Message {
	switch method {
	case "ping":
		return &mcp.Message{Result: []byte("{}")}
	case methodInitialize, methodDiscover, "logging/setLevel":
	default:
		return nil
	}
	if t.book == nil || t.book.begin(server, method) != nil || t.from == nil && !t.book.knows(server) {
		return nil
	}
	switch method {
	case methodDiscover:
		return &mcp.Message{Error: fmt.Appendf(nil, `{"code":%d,"message":"server/discover is not on the tape: begin with initialize"}`, codeNoMethod)}
	case methodInitialize:
		return t.welcome(server, params)
	}
	return &mcp.Message{Result: []byte("{}")}
}

// welcome is the answer of a server of which a tape holds calls alone, to initialize.
func (t *tools) welcome(server string, params json.RawMessage) *mcp.Message {
	var asked struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(params, &asked) // what names no version gets none
	version, errVersion := jsonscan.Marshal(asked.ProtocolVersion)
	name, errName := jsonscan.Marshal(server)
	if errors.Join(errVersion, errName) != nil {
		return nil
	}
	return &mcp.Message{Result: fmt.Appendf(nil,
		`{"protocolVersion":%s,"capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":%s,"version":""}}`, version, name)}
}

// messages puts what was asked and what came onto the tape, under the id of its place among the requests to its server.
func (t *tools) messages(k *tape.MCPJSONRPC, x *toolExchange) (err error) {
	id := strconv.AppendUint(nil, x.id, 10)
	asked := request(id, x.method, x.params)
	var answer []byte
	switch {
	case t.from != nil:
		if asked, answer, err = t.likeTaped(x, asked); err != nil {
			return err
		}
	case x.answer != nil:
		answer = x.answer.AnswerTo(id)
	}
	if k.Request, err = t.rec.Payload(asked); err != nil {
		return err
	}
	if k.Response, err = t.rec.Payload(answer); err != nil {
		return err
	}
	k.RequestDigest, k.ResponseDigest = k.Request.Hash, k.Response.Hash
	if t.from != nil && t.from.foreign { // whose digests may be of something else
		was := x.call.kind
		if k.Request.Same(was.Request) {
			k.RequestDigest = was.RequestDigest
		}
		if k.Response.Same(was.Response) {
			k.ResponseDigest = was.ResponseDigest
		}
	}
	return nil
}

// likeTaped returns the messages of a replay. The answer stands as the tape has it, byte by byte. So does, of another producer's tape, a
// request that asks the same: its blanks and its id are not what the run did.
func (t *tools) likeTaped(x *toolExchange, asked []byte) (_, answer []byte, err error) {
	was := x.call.kind
	if was.Response != nil {
		if answer, err = was.Response.Bytes(t.book.store); err != nil {
			return nil, nil, err
		}
	}
	if !t.from.foreign || was.Request == nil {
		return asked, answer, nil
	}
	m, err := mcp.MessageOf(was.Request, t.book.store)
	switch {
	case err != nil: // nobody knows what it asked
		return asked, answer, nil
	case m.Method == x.method && bytes.Equal(sortedParams(m.Method, m.Params), sortedParams(x.method, t.book.clean(x.params))):
		asked, err = was.Request.Bytes(t.book.store)
		return asked, answer, err
	}
	return request(m.ID, x.method, x.params), answer, nil
}

// sortedParams is the canonical form of the params of a request, with no arguments where they are empty.
func sortedParams(method string, params []byte) []byte {
	v, err := canonjson.Parse(params)
	if err != nil || v.Kind != canonjson.Object {
		return []byte("{}")
	}
	v.Members = withoutEmpty(method, v.Members)
	return v.Append(nil)
}
