package daemon_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

func builtinRig(t *testing.T) (*rig, *peer) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands here are those of Unix")
	}
	r := start(t, &daemon.Options{Builtins: []daemon.Builtin{
		{Name: "drive_cli", Commands: []string{"sh", "cat", "echo"}},
		{Name: "check_outcome", Commands: []string{"sh"}},
	}})
	return r, r.as("a")
}

type builtinOutput struct {
	ExitCode  *int `json:"exit_code"`
	TimedOut  bool `json:"timed_out"`
	Stdout    string
	Stderr    string
	Truncated bool
	Passed    *bool
}

func (p *peer) builtin(tool, params string) builtinOutput {
	p.t.Helper()
	res := p.call(tool, params).Results[0]
	if res.Status != proposal.Succeeded {
		p.t.Fatalf("%s %s: %s %s", tool, params, res.Status, *res.Error)
	}
	var out builtinOutput
	if err := json.Unmarshal(res.Output, &out); err != nil {
		p.t.Fatal(err)
	}
	return out
}

func TestBuiltinsRunAllowedCommands(t *testing.T) {
	_, p := builtinRig(t)
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	if out := p.builtin("drive_cli", `{"command":"cat","prompt":"as $HOME; input"}`); out.Stdout != "as $HOME; input" || *out.ExitCode != 0 {
		t.Errorf("%+v", out)
	}
	if out := p.builtin("drive_cli", `{"command":["echo","-n"],"args":["{prompt}","x{prompt}"],"prompt":"; touch /tmp/no"}`); out.Stdout != "; touch /tmp/no x{prompt}" {
		t.Errorf("%+v", out)
	}
	if out := p.builtin("drive_cli", `{"command":["sh","-c","echo bad >&2; exit 7"]}`); *out.ExitCode != 7 || out.Stderr != "bad\n" {
		t.Errorf("%+v", out)
	}
	if out := p.builtin("drive_cli", `{"command":["sh","-c","kill -TERM $$"]}`); *out.ExitCode != 143 {
		t.Errorf("%+v", out)
	}
	if out := p.builtin("check_outcome", `{"command":["sh","-c","exit 0"]}`); !*out.Passed {
		t.Errorf("%+v", out)
	}
	if out := p.builtin("check_outcome", `{"command":["sh","-c","exit 1"]}`); *out.Passed {
		t.Errorf("%+v", out)
	}
	if out := p.builtin("drive_cli", `{"command":["sh","-c","head -c 600000 /dev/zero | tr '\\0' x"]}`); len(out.Stdout) != 256<<10 || !out.Truncated {
		t.Errorf("%d bytes, truncated %v", len(out.Stdout), out.Truncated)
	}
	got := turns(t, p.trace(run))
	for i, want := range []string{`"prompt":"as $HOME; input"`, ``, `"cli_outcome":{"outcome":"exited","code":7}`, `"code":143`, `"verifier_verdict":"pass"`, `"verifier_verdict":"fail"`} {
		if !strings.Contains(got[i], want) {
			t.Errorf("turn %d: %s lacks %s", i, got[i], want)
		}
	}
}

func TestBuiltinsRefuseEverythingElse(t *testing.T) {
	_, p := builtinRig(t)
	for _, params := range []string{
		`{"command":"ls"}`, `{"command":"/bin/sh"}`, `{"command":"./sh"}`, `{"command":"sh -c true"}`, `{"command":["../bin/sh"]}`,
		`{"command":""}`, `{"command":[]}`, `{}`, `{"command":5}`, `{"command":["cat"],"args":"x"}`, `{"command":"cat","cwd":"/no/such"}`,
	} {
		if res := p.call("drive_cli", params).Results[0]; res.Status != proposal.Failed && res.Status != proposal.Rejected {
			t.Errorf("%s: %s %s", params, res.Status, res.Output)
		}
	}
	if res := p.call("check_outcome", `{"command":"cat"}`).Results[0]; res.Status != proposal.Failed || !strings.Contains(*res.Error, "not allowed") {
		t.Errorf("the other tool's command: %+v", res)
	}
	p.refused(rpcapi.CodeInvalidParams, rpcapi.ToolsRegister, json.RawMessage(`[{"name":"drive_cli"}]`))
	var list rpcapi.ToolsListResult
	p.must(rpcapi.ToolsList, nil, &list)
	if list.Count != 2 || list.Tools[1].Source != rpcapi.SourceBuiltin {
		t.Errorf("%+v", list)
	}
	for _, bad := range []daemon.Builtin{{Name: "shell", Commands: []string{"sh"}}, {Name: "drive_cli"}, {Name: "drive_cli", Commands: []string{"no-such-program-anywhere"}}} {
		if d, err := daemon.Open(t.Context(), &daemon.Options{Listen: "127.0.0.1:0", Tokens: t.TempDir(), Builtins: []daemon.Builtin{bad}}); err == nil {
			t.Errorf("%+v was accepted", bad)
			_ = d.Shutdown(t.Context())
		}
	}
}

// TestABuiltinPastItsTimeIsKilledWithItsChildren lets a command start another that would outlive it.
func TestABuiltinPastItsTimeIsKilledWithItsChildren(t *testing.T) {
	_, p := builtinRig(t)
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	fifo := filepath.Join(t.TempDir(), "held")
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		t.Fatal(err)
	}
	letGo := make(chan error, 1)
	go func() { // ends when no process holds the FIFO
		_, err := os.ReadFile(fifo)
		letGo <- err
	}()
	script, _ := json.Marshal("exec 3>" + fifo + "; sleep 3600 & echo begun; sleep 3600")
	began := time.Now()
	out := p.builtin("drive_cli", `{"timeout_ms":200,"prompt":"p","command":["sh","-c",`+string(script)+`]}`)
	if !out.TimedOut || out.ExitCode != nil || out.Stdout != "begun\n" {
		t.Errorf("%+v", out)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if f, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil { // a reader whom nobody came to reads on
		f.Close()
	}
	select {
	case err := <-letGo:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the child outlived its parent")
	}
	if got := turns(t, p.trace(run)); !strings.Contains(got[0], `"cli_outcome":{"outcome":"timeout"}`) {
		t.Errorf("%s", got)
	}
	res := p.submit(`{"proposal":{"actions":[{"type":"tool_call","tool":"drive_cli","timeout_ms":100,"parameters":{"command":["sh","-c","sleep 60"]}}]}}`).Results[0]
	if res.Status != proposal.Failed {
		t.Errorf("the action's own deadline: %+v", res)
	}
	if got := turns(t, p.trace(run)); !strings.Contains(got[1], `"cli_outcome":{"outcome":"timeout"}`) {
		t.Errorf("%s", got)
	}
}
