package matching

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A program asks models and tools through a run, and keeps an account of what it got.
type program struct {
	run  *run
	seed uint64     // another one in each run
	free *rand.Rand // of seed; for one goroutine
	h1   *http.Client
	h2   *http.Client

	mu      sync.Mutex
	account []string
}

func newProgram(r *run, seed uint64) *program {
	return &program{run: r, seed: seed, free: rand.New(rand.NewPCG(seed, 0)), h1: r.client("h1"), h2: r.client("h2")}
}

// note adds a line to the account.
func (p *program) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account = append(p.account, fmt.Sprintf(format, args...))
}

// each runs f n times at once and waits for all.
func (p *program) each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// message is one of a conversation.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func said(content string) message { return message{"user", content} }

// body is a request for an answer to messages.
func body(messages []message) string {
	b, _ := json.Marshal(map[string]any{"model": "m", "max_tokens": 100, "stream": true, "messages": messages}) // marshals
	return string(b)
}

// statusError is an answer that is none.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// errNotMine is that of an answer which names another request.
var errNotMine = errors.New("the answer is for another request")

// A call is one request to a model.
type call struct {
	ctx      context.Context
	client   *http.Client
	messages []message
	attempt  int
	// stop is told of the number of events so far, and ends reading where it says so. Nil reads to the end.
	stop func(events int) bool
	// atLast ends reading at the last event, before the end of the body.
	atLast bool
}

const messagesPath = "/v1/messages"

// ask sends the call and returns the text of the answer. A text that is whole is checked for whom it is.
func (p *program) ask(c *call) (string, error) {
	url := "http://" + model + messagesPath
	if c.client == p.h2 {
		url = "https://" + model + messagesPath
	}
	sent := body(c.messages)
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, url, strings.NewReader(sent))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Stainless-Retry-Count", strconv.Itoa(c.attempt))
	res, err := c.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, err := io.ReadAll(res.Body)
		return "", errors.Join(err, &statusError{res.StatusCode, string(b)})
	}
	text, err := readEvents(res.Body, c)
	if err == nil && !strings.HasPrefix(text, "for "+digest(messagesPath+sent)+" ") {
		p.run.t.Errorf("asked %.300q, got %.300q", sent, text)
		err = errNotMine
	}
	return text, err
}

// errStopped ends an answer that the caller has seen enough of.
var errStopped = errors.New("stopped reading")

// readEvents puts the text of a stream together.
func readEvents(r io.Reader, c *call) (string, error) {
	var text strings.Builder
	lines, events, done := bufio.NewScanner(r), 0, false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			done = done || lines.Text() == "event: message_stop"
			continue
		}
		var e struct{ Delta struct{ Text string } }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return text.String(), err
		}
		text.WriteString(e.Delta.Text)
		if events++; c.stop != nil && c.stop(events) {
			return text.String(), errStopped
		}
		if done && c.atLast {
			return text.String(), nil
		}
	}
	if err := lines.Err(); err != nil {
		return text.String(), err
	}
	if !done {
		return text.String(), io.ErrUnexpectedEOF
	}
	return text.String(), nil
}

// insist asks until there is an answer, at most attempts times.
func (p *program) insist(c *call, attempts int) (string, error) {
	var err error
	for c.attempt = range attempts {
		var text string
		if text, err = p.ask(c); err == nil {
			return text, nil
		}
	}
	return "", err
}

// tool asks a plain HTTP tool.
func (p *program) tool(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+tools+path, nil)
	if err != nil {
		return "", err
	}
	res, err := p.h1.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = &statusError{res.StatusCode, string(b)}
	}
	if err == nil && !strings.HasPrefix(string(b), "for "+digest(path)+" ") {
		p.run.t.Errorf("asked %s, got %q", path, b)
		err = errNotMine
	}
	return string(b), err
}

// A talk is one conversation.
type talk struct {
	id       int
	client   *http.Client
	attempts int
	messages []message
}

// talk makes conversation i, whose first message is opening. Every other one goes over HTTP/2, all of those over one
// connection.
func (p *program) talk(i int, opening string) *talk {
	t := &talk{id: i, client: p.h1, attempts: 1, messages: []message{said(opening)}}
	if i%2 == 1 {
		t.client = p.h2
	}
	return t
}

// call is the next question of the talk.
func (t *talk) call() *call {
	return &call{ctx: context.Background(), client: t.client, messages: t.messages}
}

// turn asks, and puts the answer and what the user says next behind the history. It reports whether the talk goes on.
func (p *program) turn(t *talk, next string) bool {
	text, err := p.insist(t.call(), t.attempts)
	if err != nil {
		p.run.t.Errorf("conversation %d, message %d: %v", t.id, len(t.messages), err)
		return false
	}
	t.messages = append(t.messages, message{"assistant", text}, said(next))
	return true
}

// close puts the whole talk into the account.
func (p *program) close(t *talk) { p.note("%s", body(t.messages)) }
