package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxLine bounds a line of the server, in bytes.
const maxLine = 256 << 20

// maxUnread is how many answers to nothing that is waited for may lie about.
const maxUnread = 256

// patience is how long a server may take to end when its stdin has.
const patience = 5 * time.Second

// A server is the process that is tried. One goroutine reads what it says, until it has ended.
type server struct {
	t       *tester
	c       *conversation
	cmd     *exec.Cmd
	sending sync.Mutex // a line at a time: questions of the client, answers to the server's
	stdin   io.WriteCloser
	answers chan *mcp.Message // closed when it says no more
	used    []bool            // of c.server: answers that were given
}

// start starts a server for a conversation; end must follow.
func start(ctx context.Context, t *tester, c *conversation) (*server, error) {
	s := &server{t: t, c: c, answers: make(chan *mcp.Message, maxUnread), used: make([]bool, len(c.server))}
	s.cmd = exec.CommandContext(ctx, t.o.Argv[0], t.o.Argv[1:]...)
	s.cmd.Env, s.cmd.Stderr, s.cmd.WaitDelay = t.o.Env, t.o.Stderr, patience
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.read(stdout)
	return s, nil
}

// end has the server end, and waits for that.
func (s *server) end() {
	s.stdin.Close()
	kill := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	for range s.answers { // what it says yet: the pipe is read to its end before Wait closes it
	}
	_ = s.cmd.Wait()
	kill.Stop()
}

// send writes a line. That the server takes none any more is seen by its answers.
func (s *server) send(line []byte) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_, _ = s.stdin.Write(line)
}

// read hands on the answers of the server, and answers what it asks.
func (s *server) read(stdout io.Reader) {
	defer close(s.answers)
	lines := jsonscan.NewLines(stdout, maxLine)
	for {
		line, err := lines.Next()
		if err != nil {
			return
		}
		messages, _, err := mcp.Parse(bytes.Clone(line))
		if err != nil {
			continue // a log
		}
		for i := range messages {
			switch m := &messages[i]; {
			case m.IsAnswer():
				s.answers <- m
			case m.IsRequest():
				s.send(s.reply(m))
			}
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
				return m, nil
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
	want := s.t.log.Surface(asked.Method, asked.Params)
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
	surface = s.t.log.Surface(k.Method, question.Params)
	if said.Error != nil {
		return surface, slices.Concat([]byte(`"error":`), said.Error)
	}
	return surface, slices.Concat([]byte(`"result":`), said.Result)
}
