//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A killable daemon is serve in a process of its own.
type killable struct {
	cmd  *exec.Cmd
	at   served
	said *bufio.Reader // its stderr
}

func startServe(t *testing.T, listen, data string) *killable {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := &killable{cmd: exec.Command(exe, "serve", "--json", "--listen", listen, "--data", data)}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := k.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.said = bufio.NewReader(errs)
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &k.at) != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return k
}

func (k *killable) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

// until reads what it says up to a line that holds text.
func (k *killable) until(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := k.said.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("%q was never said: %v", text, err)
		}
	}
}

// busy makes a daemon serve a proposal whose tool does not answer.
func busy(t *testing.T, k *killable) {
	t.Helper()
	called := make(chan struct{})
	tool := client.Tool{Name: "wait", Run: func(ctx context.Context, _ *client.ToolCall) (any, error) {
		close(called)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	c, err := client.Dial(t.Context(), k.at.URL, &client.Options{Tools: []client.Tool{tool}, AgentID: "a", Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		_, _ = c.Submit(context.Background(), &rpcapi.Proposal{Actions: []rpcapi.Action{{Type: "tool_call", Tool: "wait"}}})
	}()
	<-called
}

// TestServeSignals: a signal stops it as asked; one that comes while it waits for a request ends it at once.
func TestServeSignals(t *testing.T) {
	for _, second := range []bool{false, true} {
		home := homed(t)
		k := startServe(t, "127.0.0.1:0", filepath.Join(home, "data"))
		if second {
			busy(t, k)
		}
		if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		k.until(t, "stopping; once more ends it at once")
		if second {
			if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		} else {
			k.until(t, "tapedeck: stopped")
		}
		err := k.cmd.Wait()
		var exit *exec.ExitError
		status := k.cmd.ProcessState.Sys().(syscall.WaitStatus)
		killed := status.Signaled() && status.Signal() == syscall.SIGTERM
		if killed != second || !second && err != nil || err != nil && !errors.As(err, &exit) {
			t.Errorf("second %v: ended with %v", second, err)
		}
		if _, err := os.Stat(k.at.TokenFile); (err == nil) != second {
			t.Errorf("second %v: its token: %v", second, err)
		}
	}
}
