// Package mcptest holds an MCP server against recorded clients' calls: the server that runs now is told what the recorded one was told, and
// what it answers is compared.
//
// Goals: who changes a server sees which answers, tools and schemas are others now, by the calls that agents really make. Not goals: judging
// whether a difference is meant; HTTP+SSE, and what comes on a stream of GET.
//
// A conversation is played with a process, or over Streamable HTTP with a session, of its own: each message of the client as it was recorded,
// with its id, in recorded order, a request after the answer to the one before. What the server asks (sampling, roots, elicitation) gets what
// the recorded client answered to the same question, else an error. Placeholders become the secrets of the caller's environment, where it has
// them; over HTTP those of recorded headers too, and a header whose secret is not there is left out.
//
// Compared is what replays compare (package mcp, "What is compared"): results and errors as canonical JSON, secrets and volatile facts aside.
// The name and version that a server gives itself may be others. Of tools/list and its kin each entry is compared with that of the same name,
// whatever the order. Notifications, logs and stderr are not compared, and neither is a request that got no answer when it was recorded.
package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Status is how a call ended.
type Status string

// How calls end. What was NotCompared got no answer when it was recorded.
const (
	Same        Status = "same"
	Differs     Status = "differs"
	NoAnswer    Status = "no-answer"
	NotCompared Status = "not-compared"
)

// A Result is one request of a recorded client, sent to the server of now.
type Result struct {
	Server       string            `json:"server"`
	Conversation uint64            `json:"conversation"`
	Record       uint64            `json:"record"` // seq
	Method       string            `json:"method"`
	Tool         string            `json:"tool,omitempty"`
	Status       Status            `json:"status"`
	Why          string            `json:"why,omitempty"` // there is no answer
	Changes      []fidelity.Change `json:"changes,omitempty"`
	MS           float64           `json:"ms"`
}

// Options say which server is tried, and how. Argv or URL is needed.
type Options struct {
	Argv    []string
	URL     string      // of a server over Streamable HTTP; "" starts Argv
	Header  http.Header // of each request there, in the place of what was recorded
	Env     []string    // of the server, and where secrets are
	Server  string      // name in the recording; "" where that holds one alone
	Timeout time.Duration
	Stderr  io.Writer
	Report  func(*Result)
}

// DefaultTimeout is how long an answer may take.
const DefaultTimeout = 30 * time.Second

// Run plays the conversations of the recording, or the bare tape, at path. What differs is in the results; the error says what kept it from
// being tried.
func Run(ctx context.Context, path string, o *Options) ([]*Result, error) {
	t, err := load(path, o)
	if err != nil {
		return nil, err
	}
	defer t.book.Close()
	var all []*Result
	for _, c := range t.conversations {
		results, err := t.play(ctx, c)
		all = append(all, results...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// A tester plays what one tape holds.
type tester struct {
	o             *Options
	book          *derive.MCPBook // what puts secrets back
	conversations []*conversation
	headers       map[uint64][]tape.HeaderField // of recorded requests over HTTP, by the arrival of their exchange
}

// A conversation is what was recorded of one, in the order in which it was asked.
type conversation struct {
	name   string
	number uint64
	client []*tape.Record // what the client asked and told
	server []*tape.MCPJSONRPC
}

func load(path string, o *Options) (*tester, error) {
	t := &tester{o: o, headers: make(map[uint64][]tape.HeaderField)}
	var err error
	if t.book, err = derive.OpenMCPBook(path, o.Env, t.note); err != nil {
		return nil, err
	}
	names, err := chosen(t.book.Servers(), o.Server)
	if err != nil {
		t.book.Close()
		return nil, err
	}
	t.conversations = slices.DeleteFunc(t.conversations, func(c *conversation) bool { return names[c.number] == "" })
	for _, c := range t.conversations {
		c.name = names[c.number]
		slices.SortStableFunc(c.client, func(a, b *tape.Record) int {
			return cmp.Compare(a.Kind.(*tape.MCPJSONRPC).Arrival, b.Kind.(*tape.MCPJSONRPC).Arrival)
		})
	}
	return t, nil
}

// chosen are the conversations that a name means: "files" all with that server, "files#2" the second.
func chosen(all []mcp.Recorded, name string) (map[uint64]string, error) {
	var servers []string
	out := make(map[uint64]string)
	for _, r := range all {
		short := tape.MCPServer(r.Server)
		if !slices.Contains(servers, short) {
			servers = append(servers, short)
		}
		if name == "" || name == r.Server || name == short {
			out[r.Conversation] = r.Server
		}
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("it holds no conversation with an MCP server")
	case len(out) == 0:
		return nil, fmt.Errorf("it holds no server %q, only %s", name, strings.Join(servers, ", "))
	case name == "" && len(servers) > 1:
		return nil, fmt.Errorf("it holds several servers: name one with --server: %s", strings.Join(servers, ", "))
	}
	return out, nil
}

// note takes a record of a conversation, in the order of the tape.
func (t *tester) note(r *tape.Record) {
	if x, ok := r.Kind.(*tape.HTTPExchange); ok && t.o.URL != "" {
		t.headers[x.Arrival] = x.RequestHeaders
	}
	k, ok := r.Kind.(*tape.MCPJSONRPC)
	if !ok {
		return
	}
	i := slices.IndexFunc(t.conversations, func(c *conversation) bool { return c.number == k.Conversation })
	if i < 0 {
		i = len(t.conversations)
		t.conversations = append(t.conversations, &conversation{number: k.Conversation})
	}
	c := t.conversations[i]
	if k.From == string(mcp.Server) {
		c.server = append(c.server, k)
	} else {
		kept := *r
		c.client = append(c.client, &kept)
	}
}

// play plays one conversation with a server of its own.
func (t *tester) play(ctx context.Context, c *conversation) (out []*Result, err error) {
	s, err := start(ctx, t, c)
	if err != nil {
		return nil, err
	}
	defer s.end()
	for _, r := range c.client {
		k := r.Kind.(*tape.MCPJSONRPC)
		message, err := t.message(k.Request)
		if err != nil {
			return out, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		if message.IsNotification() {
			s.send(&message.Message, message.line, k)
			continue
		}
		res := NewResult(c.name, c.number, r.Seq, &message.Message)
		began := time.Now()
		if err := t.ask(ctx, s, k, message, res); err != nil {
			return out, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		res.MS = float64(time.Since(began).Microseconds()) / 1000
		out = append(out, res)
		if t.o.Report != nil {
			t.o.Report(res)
		}
	}
	return out, ctx.Err()
}

// ask sends a request and compares what comes.
func (t *tester) ask(ctx context.Context, s *server, k *tape.MCPJSONRPC, asked *message, res *Result) error {
	s.send(&asked.Message, asked.line, k)
	if k.Answered == 0 && k.Error != "" {
		res.Status, res.Why = NotCompared, k.Error
		return nil
	}
	recorded, err := t.message(k.Response)
	if err != nil {
		return err
	}
	answer, err := s.answer(ctx, asked.ID, cmp.Or(t.o.Timeout, DefaultTimeout))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		res.Status, res.Why = NoAnswer, err.Error()
		return nil
	}
	res.Compare(t.book.Log, &recorded.Message, answer)
	return nil
}

// A message is one, with the line that it is sent as.
type message struct {
	mcp.Message
	line []byte
}

// message reads a recorded message.
func (t *tester) message(p *tape.Payload) (*message, error) {
	if p == nil {
		return nil, errors.New("the tape does not hold the message")
	}
	b, err := p.Bytes(t.book.Store)
	if err != nil {
		return nil, err
	}
	all, _, err := mcp.Parse(t.book.Reveal(b))
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("the tape does not hold a message alone: %w", err)
	}
	return &message{all[0], slices.Concat(t.book.Reveal(b), []byte("\n"))}, nil
}

// NewResult is the result of a request before it is answered.
func NewResult(server string, conversation, record uint64, asked *mcp.Message) *Result {
	return &Result{Server: server, Conversation: conversation, Record: record, Method: asked.Method, Tool: toolOf(asked)}
}

// Compare says what differs between two answers, as replays compare them. log brings them into the form of the tape.
func (r *Result) Compare(log *mcp.Log, was, now *mcp.Message) {
	a, b := surface(log, was), surface(log, now)
	if r.Status = Same; string(a) == string(b) {
		return
	}
	if r.Changes = fidelity.DiffJSON(comparable(r.Method, a), comparable(r.Method, b)); len(r.Changes) > 0 {
		r.Status = Differs
	}
}

// surface is what of an answer is compared: its result or its error, under that name.
func surface(log *mcp.Log, m *mcp.Message) []byte {
	name, value := "result", m.Result
	if m.Error != nil {
		name, value = "error", m.Error
	}
	line := log.Redact(mcp.Server, slices.Concat([]byte(`{"jsonrpc":"2.0","id":0,"`+name+`":`), value, []byte("}")))
	if len(line.Messages) == 1 {
		value = line.Messages[0].Result
		if name == "error" {
			value = line.Messages[0].Error
		}
	}
	return slices.Concat([]byte(`{"`+name+`":`), log.Surface("", value), []byte("}"))
}

// lists are the members of results that hold entries with names.
var lists = map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}

// comparable is an answer with its entries under their names, and without what a server calls itself.
func comparable(method string, b []byte) []byte {
	var answer map[string]map[string]any
	if json.Unmarshal(b, &answer) != nil || answer["result"] == nil {
		return b
	}
	result := answer["result"]
	if method == "initialize" || method == "server/discover" {
		delete(result, "serverInfo")
	}
	if key := lists[method]; key != "" {
		named := make(map[string]any)
		entries, _ := result[key].([]any)
		for _, e := range entries {
			entry, _ := e.(map[string]any)
			name, _ := entry["name"].(string)
			if _, twice := named[name]; twice || name == "" {
				return b
			}
			named[name] = entry
		}
		result[key] = named
	}
	out, err := json.Marshal(answer)
	if err != nil {
		return b
	}
	return out
}

// toolOf is the tool that a call names.
func toolOf(m *mcp.Message) string {
	var p struct {
		Name string `json:"name"`
	}
	if m.Method != "tools/call" && m.Method != "prompts/get" || json.Unmarshal(m.Params, &p) != nil {
		return ""
	}
	return p.Name
}
