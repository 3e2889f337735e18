package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// homed gives the test's commands directories of their own.
func homed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("NO_COLOR", "1")
	return dir
}

// shared takes what several goroutines write, as a file does.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serving runs serve in this process until the test ends, or stop is called, which returns its status.
func serving(t *testing.T, args ...string) (at served, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	var errs shared
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--json"}, args...), streams{strings.NewReader(""), w, &errs})
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		t.Fatalf("serve %q is not ready: %v\n%s", args, err, &errs)
	}
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	status := -1
	stop = func() int {
		if cancel(); status < 0 {
			status = <-ended
		}
		return status
	}
	t.Cleanup(func() { stop() })
	return at, stop
}

// said runs a command and returns its status and what it printed.
func said(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(context.Background(), args, streams{strings.NewReader(""), &o, &e})
	return status, o.String(), e.String()
}

// oneRun makes a run with a turn that ran and one that a policy denied.
func oneRun(t *testing.T, url, intent string) (run *client.Run) {
	t.Helper()
	c, err := client.Dial(t.Context(), url, &client.Options{AgentID: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if run, err = c.Start(t.Context(), rpcapi.RunsStartParams{Intent: intent}); err != nil {
		t.Fatal(err)
	}
	tool, cmd := "bash", "ls"
	turns := []rpcapi.Turn{
		{Tool: &tool, Parameters: json.RawMessage(`{"command":"ls"}`), Output: json.RawMessage(`"a\u001b[2Jb"`)},
		{Tool: &tool, Parameters: json.RawMessage(`{"command":"rm"}`), PolicyRejected: &runtrace.PolicyRejected{Rule: "no_rm", Param: &cmd, Reason: "no"}},
	}
	if _, err := run.RecordTurns(t.Context(), turns...); err != nil {
		t.Fatal(err)
	}
	return run
}

// TestServe: it says where it is, answers there, keeps what it was given, and stops as asked; its runs can be read with it and
// without it.
func TestServe(t *testing.T) {
	home := homed(t)
	data := filepath.Join(home, "data")
	at, stop := serving(t, "--listen", "127.0.0.1:0", "--data", data)
	if at.Data != data || !at.Auth || at.PID != os.Getpid() {
		t.Errorf("%+v", at)
	}
	for _, file := range []string{at.TokenFile, at.HostTokenFile} {
		if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, st, err)
		}
	}
	res, err := http.Get("http" + strings.TrimPrefix(at.URL, "ws") + "/readyz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("readyz: %v, %v", res, err)
	} else {
		res.Body.Close()
	}
	oneRun(t, at.URL, "list it")
	for _, from := range [][]string{{"--daemon", at.URL}, {"--data", data}} {
		status, out, errs := said(append([]string{"runs", "show", "last"}, from...)...)
		if status != 0 || !strings.Contains(out, `a\x1b[2Jb`) || !strings.Contains(out, "⊘ 1 bash  REJECTED") {
			t.Errorf("%q: status %d\n%s%s", from, status, out, errs)
		}
	}
	for args, want := range map[[2]string]string{
		{"--token-file", at.TokenFile}:              "the host's token was looked for in " + at.TokenFile, // the agents' one
		{"--token-file", filepath.Join(home, "no")}: "--token-file names it",
		{"--agent", "../x"}:                         "not a plain name",
	} {
		if status, _, errs := said("runs", "list", "--daemon", at.URL, args[0], args[1]); status != 1 || !strings.Contains(errs, want) || strings.Contains(errs, "starts a daemon") {
			t.Errorf("%q: status %d\n%s", args, status, errs)
		}
	}
	if status := stop(); status != 0 {
		t.Errorf("stopped with %d", status)
	}
	if _, err := os.Stat(at.TokenFile); err == nil {
		t.Error("the token is there after the end")
	}
	if status, out, _ := said("runs", "list", "--data", data); status != 0 || !strings.Contains(out, "incomplete") {
		t.Errorf("status %d\n%s", status, out)
	}
	if status, _, errs := said("runs", "list", "--daemon", at.URL); status != 1 || !strings.Contains(errs, "no daemon answers") || !strings.Contains(errs, "tapedeck serve") {
		t.Errorf("status %d\n%s", status, errs)
	}
}

// TestServeOnASocket: a Unix socket alone serves as well.
func TestServeOnASocket(t *testing.T) {
	home := homed(t)
	at, _ := serving(t, "--socket", filepath.Join(home, "s"), "--data", filepath.Join(home, "data"))
	oneRun(t, at.URL, "over a socket")
	t.Setenv(daemonEnv, at.URL)
	if status, out, errs := said("runs", "list"); status != 0 || !strings.Contains(out, "over a socket") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// TestServeRefuses: what cannot go together, or cannot be, is refused before a client could come, with the next step.
func TestServeRefuses(t *testing.T) {
	home := homed(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", l.Addr().String()}, "--listen 127.0.0.1:0 takes a free port"},
		{[]string{"--listen", "0.0.0.0:0", "--no-auth"}, "loopback"},
		{[]string{"--no-auth", "--builtin", "drive_cli", "--allow", "ls"}, "--builtin and --no-auth"},
		{[]string{"--builtin", "drive_cli"}, "--allow"},
		{[]string{"--allow", "ls"}, "--builtin"},
		{[]string{"--builtin", "other", "--allow", "ls"}, "want one of drive_cli, check_outcome"},
		{[]string{"--policies", filepath.Join(home, "none")}, "--policies: open "},
		{[]string{"--listen", "9100"}, "want HOST:PORT"},
		{[]string{"--socket", strings.Repeat("x", 200)}, "want a path of at most"},
		{[]string{"--log-level", "loud"}, "want debug, info"},
		{[]string{"--log-format", "xml"}, "want text or json"},
		{[]string{"--grace", "-1s"}, "--grace"},
		{[]string{"--drain", "0s"}, "--drain"},
	} {
		status, out, errs := said(append([]string{"serve", "--data", filepath.Join(home, "data")}, c.args...)...)
		if status != 1 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: status %d\n%s%s", c.args, status, out, errs)
		}
	}
}

// TestServeSaysItsPolicies: whoever starts it sees how many rules of which file are in force.
func TestServeSaysItsPolicies(t *testing.T) {
	for n, want := range []string{"tapedeck: 0 policies in force for every proposal, of p.yaml\n", "tapedeck: 1 policy in force for every proposal, of p.yaml\n"} {
		o := &serveOptions{Options: daemon.Options{NoAuth: true, Policies: make([]policy.Rule, n)}, policies: "p.yaml"}
		var errs strings.Builder
		if err := o.ready("ws://127.0.0.1:9100", &console{streams: streams{err: &errs}}); err != nil || !strings.HasSuffix(errs.String(), want) {
			t.Errorf("%v, it said:\n%s", err, &errs)
		}
	}
}

// TestServeLogs: the log is structured, on stderr, and no finer than asked for.
func TestServeLogs(t *testing.T) {
	var b bytes.Buffer
	log := (&logOptions{"json", "warn"}).logger(&b)
	log.Info("no")
	log.Warn("yes", "n", 1)
	var line struct {
		Level, Msg string
		N          int
	}
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line.Msg != "yes" || line.N != 1 {
		t.Errorf("%v: %s", err, &b)
	}
}

// TestWatchLines: without a terminal each turn is a line, with --json an object, until the run ends.
func TestWatchLines(t *testing.T) {
	home := homed(t)
	at, _ := serving(t, "--listen", "127.0.0.1:0", "--data", filepath.Join(home, "data"))
	r := oneRun(t, at.URL, "watch me")
	outs := make(chan string, 2)
	for _, args := range [][]string{{"runs", "watch", "--agent", "coder"}, {"runs", "watch", "last", "--json"}} {
		pr, pw := io.Pipe()
		go func() {
			if status := run(context.Background(), append(args, "--daemon", at.URL), streams{strings.NewReader(""), pw, io.Discard}); status != 0 {
				t.Errorf("%q ended with %d", args, status)
			}
			pw.Close()
		}()
		first := bufio.NewReader(pr)
		line, err := first.ReadString('\n') // it watches by now
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			rest, _ := io.ReadAll(first)
			outs <- line + string(rest)
		}()
	}
	if err := r.Complete(t.Context(), rpcapi.Outcome{Status: "success", Summary: "Done."}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case out := <-outs:
			for _, want := range [][2]string{{"of agent coder: watch me\n", `"cursor":1,"record":{"record":"started"`}, {"rejected", "policy_rejected"},
				{"completed: success, 2 turns (1 rejected)", `"end":{"status":"completed","turns":2,"outcome":"success"}`}} {
				if !strings.Contains(out, want[0]) && !strings.Contains(out, want[1]) {
					t.Errorf("want %q in\n%s", want, out)
				}
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the watching does not end with the run")
		}
	}
}
