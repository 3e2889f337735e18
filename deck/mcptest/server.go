package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxLine bounds a line of the server, in bytes.
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
