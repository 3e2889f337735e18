package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxLine bounds a line of a process, in bytes.
const maxLine = 256 << 20

// maxUnread is how many answers to nothing that is waited for may lie about.
const maxUnread = 256

// A server is what is tried, in one conversation: a conn says what it says.
type server struct {
	conn
	t       *tester
	c       *conversation
	answers chan *answer // closed when it says no more
	used    []bool       // of c.server: answers that were given
}

// A conn is the way to a server. Whoever reads what that says gives it to server.hear.
type conn interface {
	// send passes a message of the client on, of which k is the record; nil for an answer to what the server asks. That the server takes none
	// any more is seen by its answers.
	send(m *mcp.Message, line []byte, k *tape.MCPJSONRPC)
	// end has the server end, and returns when it says no more.
	end()
}

// An answer is that to a request, or why there is none.
type answer struct {
	*mcp.Message
	err error
}

// start starts a server for a conversation, or reaches it; end must follow.
func start(ctx context.Context, t *tester, c *conversation) (s *server, err error) {
	s = &server{t: t, c: c, answers: make(chan *answer, maxUnread), used: make([]bool, len(c.server))}
	if t.o.URL != "" {
		s.conn = reach(ctx, s)
		return s, nil
	}
	s.conn, err = startProcess(ctx, s)
	return s, err
}

// end has the server end. What it says yet goes nowhere.
func (s *server) end() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.conn.end()
	}()
	for range s.answers {
	}
	<-ended
}

// hear takes a line of the server: its answers are handed on, and what it asks is answered. What is no message is a log.
func (s *server) hear(line []byte) {
	messages, _, err := mcp.Parse(bytes.Clone(line))
	if err != nil {
		return
	}
	for i := range messages {
		switch m := &messages[i]; {
		case m.IsAnswer():
			s.answers <- &answer{Message: m}
		case m.IsRequest():
			s.send(nil, s.reply(m), nil)
		}
	}
}

// answer waits for the answer to the request of an id.
func (s *server) answer(ctx context.Context, id json.RawMessage, limit time.Duration) (*mcp.Message, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case m, ok := <-s.answers:
			if !ok {
				return nil, errors.New("the server ended")
			}
			if bytes.Equal(m.ID, id) {
				return m.Message, m.err
			}
		case <-late.C:
			return nil, fmt.Errorf("no answer within %v", limit)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reply is what the recorded client answered to what the server asks: once for each time that it was asked.
func (s *server) reply(asked *mcp.Message) []byte {
	answer := []byte(`"error":{"code":-32601,"message":"the recorded client was not asked this"}`)
	want := s.t.book.Log.Surface(asked.Method, asked.Params)
	for i, k := range s.c.server {
		if s.used[i] || k.Method != asked.Method || k.Answered == 0 {
			continue
		}
		if is, said := s.recorded(k); is != nil && bytes.Equal(want, is) {
			s.used[i], answer = true, said
			break
		}
	}
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), asked.ID, []byte(","), answer, []byte("}\n"))
}

// recorded is what a recorded question of the server is compared by, and the member that answered it.
func (s *server) recorded(k *tape.MCPJSONRPC) (surface, answer []byte) {
	question, err := s.t.message(k.Request)
	if err != nil {
		return nil, nil
	}
	said, err := s.t.message(k.Response)
	if err != nil {
		return nil, nil
	}
	surface = s.t.book.Log.Surface(k.Method, question.Params)
	if said.Error != nil {
		return surface, slices.Concat([]byte(`"error":`), said.Error)
	}
	return surface, slices.Concat([]byte(`"result":`), said.Result)
}

// Headers of Streamable HTTP.
const (
	sessionHeader  = "Mcp-Session-Id"
	versionHeader  = "Mcp-Protocol-Version"
	methodHeader   = "Mcp-Method"
	acceptedTypes  = "application/json, text/event-stream"
	typeOfMessages = "application/json"
)

// A remote is a server over Streamable HTTP. Each message of the client is a request of its own, which a goroutine reads the answer of.
type remote struct {
	s      *server
	client *http.Client
	ctx    context.Context
	cut    context.CancelFunc
	under  sync.WaitGroup // requests under way

	mu      sync.Mutex
	session string // guarded by mu, with what follows
	version string
}

func reach(ctx context.Context, s *server) *remote {
	r := &remote{s: s, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}} // keys go nowhere else
	r.ctx, r.cut = context.WithCancel(ctx)
	return r
}

// send posts a message. What wants no answer has been taken when it returns.
func (r *remote) send(m *mcp.Message, line []byte, k *tape.MCPJSONRPC) {
	asks := m != nil && m.IsRequest()
	post := func() {
		if err := r.post(line, k); err != nil && asks {
			r.s.answers <- &answer{Message: m, err: err}
		}
	}
	if asks {
		r.under.Go(post)
	} else {
		post()
	}
}

func (r *remote) post(line []byte, k *tape.MCPJSONRPC) error {
	res, err := r.do(http.MethodPost, bytes.TrimSuffix(line, []byte("\n")), k)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get(sessionHeader); id != "" {
		r.mu.Lock()
		r.session = id
		r.mu.Unlock()
	}
	said := false
	err = mcp.EachLine(http.MethodPost, res, func(line []byte) error {
		said = true
		r.hear(line)
		return nil
	})
	switch {
	case said: // an answer that did not come is missed by who waits for it
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it answered with %s, and with no message", res.Status)
	}
	return err
}

// do makes a request. Its headers are those of the recorded one, and the caller's.
func (r *remote) do(method string, body []byte, k *tape.MCPJSONRPC) (*http.Response, error) {
	req, err := http.NewRequestWithContext(r.ctx, method, r.s.t.o.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	req.Header.Set("Accept", acceptedTypes)
	req.Header.Set("Content-Type", typeOfMessages)
	if r.version != "" {
		req.Header.Set(versionHeader, r.version)
	}
	if k != nil {
		req.Header.Set(methodHeader, k.Method)
		r.s.t.recordedHeader(k.Exchange, req.Header)
	}
	if req.Header.Del(sessionHeader); r.session != "" {
		req.Header.Set(sessionHeader, r.session)
	}
	for name, values := range r.s.t.o.Header {
		req.Header[name] = values
	}
	return r.client.Do(req)
}

// notRepeated are headers of a recorded request that are of its connection or its body.
var notRepeated = []string{"Host", "Content-Length", "Connection", "Accept-Encoding", "Transfer-Encoding"}

// recordedHeader adds the headers of the recorded exchange of an arrival, with the secrets of the environment. One whose secret is not there
// is left out.
func (t *tester) recordedHeader(arrival uint64, to http.Header) {
	for name, values := range exchange.HeaderOf(t.headers[arrival]) {
		for i, v := range values {
			now := t.book.Reveal([]byte(v))
			if !bytes.Equal(scrub.Renumber(now), now) {
				continue
			}
			if i == 0 {
				to.Del(name)
			}
			to.Add(name, string(now))
		}
	}
	for _, name := range notRepeated {
		to.Del(name)
	}
}

// hear takes a line of the server, after the version that it agreed to.
func (r *remote) hear(line []byte) {
	var m struct {
		Result struct{ ProtocolVersion string }
	}
	if json.Unmarshal(line, &m) == nil && m.Result.ProtocolVersion != "" {
		r.mu.Lock()
		r.version = m.Result.ProtocolVersion
		r.mu.Unlock()
	}
	r.s.hear(line)
}

// end ends the session.
func (r *remote) end() {
	r.mu.Lock()
	session := r.session
	r.mu.Unlock()
	if session != "" {
		if res, err := r.do(http.MethodDelete, nil, nil); err == nil {
			res.Body.Close()
		}
	}
	r.cut()
	r.under.Wait()
	close(r.s.answers)
}

// patience is how long a server may take to end when its stdin has.
const patience = 5 * time.Second

// A process is a server over stdio. One goroutine reads what it says, until it has ended.
type process struct {
	cmd     *exec.Cmd
	sending sync.Mutex // a line at a time: questions of the client, answers to the server's
	stdin   io.WriteCloser
	heard   chan struct{} // closed when it says no more
}

func startProcess(ctx context.Context, s *server) (conn, error) {
	o := s.t.o
	p := &process{cmd: exec.CommandContext(ctx, o.Argv[0], o.Argv[1:]...), heard: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr, p.cmd.WaitDelay = o.Env, o.Stderr, patience
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(s, stdout)
	return p, nil
}

// read gives s what the process says.
func (p *process) read(s *server, stdout io.Reader) {
	defer close(p.heard)
	defer close(s.answers)
	lines := jsonscan.NewLines(stdout, maxLine)
	for {
		line, err := lines.Next()
		if err != nil {
			return
		}
		s.hear(line)
	}
}

func (p *process) send(_ *mcp.Message, line []byte, _ *tape.MCPJSONRPC) {
	p.sending.Lock()
	defer p.sending.Unlock()
	_, _ = p.stdin.Write(line)
}

func (p *process) end() {
	p.stdin.Close()
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	<-p.heard // the pipe is read to its end before Wait closes it
	_ = p.cmd.Wait()
	kill.Stop()
}
