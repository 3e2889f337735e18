package mcptest

import (
	"context"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
