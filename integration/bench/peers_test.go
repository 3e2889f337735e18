package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
)

// aimockPackage is the peer from npm.
const aimockPackage = "@copilotkit/aimock@1.43.0"

// installed is a need: a program on the PATH.
func installed(program, how string) need {
	return func(context.Context, *env) string {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%s (install with %s)", program, how)
		}
		return ""
	}
}

var (
	needMitmproxy = installed("mitmdump", "apt-get install mitmproxy")
	needNode      = installed("node", "apt-get install nodejs npm")
)

// needAimock looks for aimock, and installs it where the caller wants that.
func needAimock(ctx context.Context, e *env) string {
	if e.aimock == (output{}) {
		e.aimock.text, e.aimock.err = e.findAimock(ctx)
	}
	if e.aimock.err != nil {
		return fmt.Sprintf("aimock (install with npm install --ignore-scripts --prefix DIR %s and set TAPEDECK_AIMOCK=DIR, or say -peers): %v",
			aimockPackage, e.aimock.err)
	}
	return ""
}

// findAimock returns the path of aimock's command line.
func (e *env) findAimock(ctx context.Context) (string, error) {
	dir := os.Getenv("TAPEDECK_AIMOCK")
	if dir == "" && !e.peers {
		return "", errors.New("TAPEDECK_AIMOCK is not set")
	}
	if dir == "" {
		dir = filepath.Join(e.tmp, "npm")
		cmd := e.command(ctx, e.tmp, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir, aimockPackage)
		cmd.Env = os.Environ()
		if _, err := do(cmd); err != nil {
			return "", err
		}
	}
	cli := filepath.Join(dir, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	_, err := os.Stat(cli)
	return cli, err
}

// startAimock starts aimock with the answer to the load generator's question.
func startAimock(ctx context.Context, e *env) (*server, error) {
	fixture := map[string]any{"fixtures": []any{map[string]any{
		"match": map[string]string{"userMessage": question}, "response": map[string]string{"content": answerText},
	}}}
	b, err := json.Marshal(fixture)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(e.tmp, "aimock.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return e.startOn(ctx, port, "node", e.aimock.text, "-p", port, "-f", path, "--log-level", "silent")
}

// startMitmproxy has mitmdump record each of the load's requests once, and starts another that answers from that as often
// as it is asked, and never needs the upstream.
func startMitmproxy(size int) peer {
	return func(ctx context.Context, e *env) (*server, error) {
		up := httptest.NewServer(http.HandlerFunc(answerOnce))
		defer up.Close()
		flows := filepath.Join(e.tmp, "mitmproxy.flows")
		if err := os.RemoveAll(flows); err != nil {
			return nil, err
		}
		rec, err := e.mitmdump(ctx, up.URL, "-w", flows)
		if err != nil {
			return nil, err
		}
		rec.ends = func() error { return rec.cmd.Process.Signal(os.Interrupt) }
		_, err = e.sendLoad(ctx, rec, load{Bytes: size, Requests: variants, Conns: 1})
		if err := errors.Join(err, rec.stop()); err != nil {
			return nil, err
		}
		return e.mitmdump(ctx, up.URL, "--server-replay", flows, "--server-replay-nopop", "--server-replay-kill-extra")
	}
}

// mitmdump starts one in front of an upstream, as quiet as it can be.
func (e *env) mitmdump(ctx context.Context, upstream string, more ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"-q", "--mode", "reverse:" + upstream, "--listen-host", "127.0.0.1", "-p", port,
		"--set", "confdir=" + filepath.Join(e.tmp, "mitmproxy"), "--set", "flow_detail=0", "--set", "connection_strategy=lazy"}
	return e.startOn(ctx, port, "mitmdump", append(args, more...)...)
}
