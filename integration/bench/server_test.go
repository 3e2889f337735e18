package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// modelPath is the path of Anthropic's messages API.
const modelPath = "/v1/messages"

// encodeAgain is what a replay competes with: a handler that decodes a request's JSON and encodes it as its answer.
func encodeAgain(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(m); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}

// answerText is what the model says to every question of the load generator, about 1 KB.
var answerText = words(1000)

// answerOnce is a handler that gives one whole answer of Anthropic's messages API.
func answerOnce(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(map[string]any{
		"id": "msg_01benchmark", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
		"content":     []map[string]any{{"type": "text", "text": answerText}},
		"stop_reason": "end_turn", "stop_sequence": nil, "usage": map[string]any{"input_tokens": 500, "output_tokens": 250},
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// serveUntilEOF is the job of a server: it says its address, and serves until its stdin ends.
func serveUntilEOF(h http.HandlerFunc) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	srv := &http.Server{Handler: h}
	go func() {
		io.Copy(io.Discard, os.Stdin) // its end is what counts
		srv.Close()
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A server is a peer under way, a process of its own.
type server struct {
	url  string
	cmd  *exec.Cmd
	said *tail
	ends func() error // asks the process to end; nil kills it
}

// stop ends the process and waits for it.
func (s *server) stop() error {
	if s.ends == nil {
		s.cmd.Cancel()
		s.cmd.Wait() // it was killed
		return nil
	}
	if err := s.ends(); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", s.cmd.Path, err, s.said)
	}
	return nil
}

// startJSON starts the peer that is net/http.
func startJSON(ctx context.Context, e *env) (*server, error) { return e.startJob(ctx, "serve") }

// startJob starts a job that is a server.
func (e *env) startJob(ctx context.Context, name string) (*server, error) {
	args := e.jobArgs(name, nil)
	s := &server{cmd: e.command(ctx, e.tmp, args[0], args[1:]...), said: new(tail)}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = s.said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.ends = in.Close
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not say its address: %w", err), s.stop())
	}
	s.url = "http://" + strings.TrimSpace(line)
	return s, nil
}

// freePort is a port of the loopback that nobody listened on a moment ago, for servers that take no listener.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// startOn starts a server that listens on a port of the loopback, and waits until it does.
func (e *env) startOn(ctx context.Context, port, name string, args ...string) (*server, error) {
	s := &server{url: "http://127.0.0.1:" + port, cmd: e.command(ctx, e.tmp, name, args...), said: new(tail)}
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for patience := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		if err == nil {
			return s, c.Close()
		}
		if ctx.Err() != nil || time.Now().After(patience) {
			s.stop()
			return nil, fmt.Errorf("%s does not listen: %w: %s", filepath.Base(name), err, s.said)
		}
	}
}

// sendLoad runs the load generator against a server.
func (e *env) sendLoad(ctx context.Context, s *server, l load) (*pace, error) {
	l.URL, l.Result = s.url+modelPath, e.resultFile("load")
	args := e.jobArgs("load", l)
	if _, err := do(e.command(ctx, e.tmp, args[0], args[1:]...)); err != nil {
		return nil, fmt.Errorf("%w (the server said: %s)", err, s.said)
	}
	p := new(pace)
	return p, readResult(l.Result, p)
}

// replayLoad runs the load generator under `tapedeck replay`: its requests are answered from the tape of a recording that
// is made at first, with the answers of h.
func (e *env) replayLoad(ctx context.Context, l load, name string, h http.HandlerFunc) (*pace, error) {
	l.Result = e.resultFile("replayed-" + name)
	deck, err := e.recordLoad(ctx, l, name, h)
	if err != nil {
		return nil, err
	}
	if _, err := deck.by.replay(ctx, deck.path, "--proxy"); err != nil {
		return nil, err
	}
	p := new(pace)
	return p, readResult(l.Result, p)
}

// recordLoad returns the recording of a load, and makes it at the first call.
func (e *env) recordLoad(ctx context.Context, l load, name string, h http.HandlerFunc) (deck, error) {
	l.URL = "http://" + upstreamHost + modelPath
	key := fmt.Sprint(name, l)
	if d, ok := e.decks[key]; ok {
		return d, nil
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	by, err := e.newRecorder()
	if err != nil {
		return deck{}, err
	}
	path, _, err := by.record(ctx, srv.URL, []string{"--proxy"}, e.jobArgs("load", l)...)
	if err != nil {
		return deck{}, err
	}
	e.decks[key] = deck{path, by}
	return e.decks[key], readResult(l.Result, new(pace))
}
