package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Headers of Streamable HTTP.
const (
	sessionHeader  = "Mcp-Session-Id"
	versionHeader  = "Mcp-Protocol-Version"
	methodHeader   = "Mcp-Method"
	acceptedTypes  = "application/json, text/event-stream"
	typeOfMessages = "application/json"
	typeOfEvents   = "text/event-stream"
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
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == typeOfEvents && res.StatusCode == http.StatusOK {
		return r.events(res.Body)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxLine))
	if err != nil {
		return err
	}
	if messages, _, errMessage := mcp.Parse(body); errMessage == nil && len(messages) > 0 {
		r.hear(body)
		return nil
	}
	return fmt.Errorf("it answered with %s, and with no message", res.Status)
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

// events gives what the events of a stream hold.
func (r *remote) events(body io.Reader) error {
	lines := jsonscan.NewLines(body, maxLine)
	var data []byte
	for {
		line, err := lines.Next()
		if err != nil {
			return nil // its end: an answer that did not come is missed by who waits for it
		}
		switch text, is := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), "data:"); {
		case is:
			data = append(append(data, strings.TrimPrefix(text, " ")...), '\n')
		case text == "" && len(data) > 0:
			r.hear(data)
			data = nil
		}
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
