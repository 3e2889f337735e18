package deck_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// server puts a server's program where it can be taken away again, and returns its path.
func (b *bench) server(name string) string {
	b.t.Helper()
	exe := ownProgram(b.t)
	path := filepath.Join(filepath.Dir(b.dir), "bin", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Link(exe, path); err != nil { // on another file system
		copyProgram(b.t, path)
	}
	return path
}

// scene is the argument of mcp-client.
func (b *bench) scene(s *mcpScene) string {
	b.t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(out)
}

// recordScene records the client in a scene and fails the test unless it ended well.
func (b *bench) recordScene(s *mcpScene) (*deck.Result, string) {
	b.t.Helper()
	res, out := b.record("mcp-client", b.scene(s))
	if res.Exit.Code != 0 {
		b.t.Fatalf("exit %+v: %s", res.Exit, out)
	}
	return res, out
}

// calls counts the MCP records of a recording by server and method.
func calls(t *testing.T, rec *recording.Recording) map[string]int {
	t.Helper()
	out := make(map[string]int)
	for _, k := range kinds(t, rec) {
		if m, ok := k.(*tape.MCPJSONRPC); ok {
			out[m.Server+" "+m.Method]++
		}
	}
	return out
}

// TestServerIsGone records a client with an MCP server, takes the server's program away and replays.
func TestServerIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	res, out := b.recordScene(&mcpScene{
		Servers: []mcpStart{{Argv: []string{path, "thing"}}},
		Calls: []mcpCall{
			{0, "tools/list", nil}, tool(0, "echo", map[string]any{"text": "a"}), tool(0, "echo", map[string]any{"text": "b"}),
			tool(0, "big", map[string]any{"Size": 1 << 20}),
		},
		Print: 100,
	})
	if got := calls(t, res.Recording); got["thing tools/call"] != 3 || got["thing initialize"] != 1 || got["thing notifications/initialized"] != 1 {
		t.Fatalf("on the tape: %v; the client said:\n%s", got, out)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	v, again := b.replay(res.Recording, nil)
	if again != out {
		t.Errorf("the client said\n%s\nand on the replay\n%s", out, again)
	}
	b.green(v)
	if !strings.Contains(out, `\"text\":\"b\"`) {
		t.Errorf("the client said\n%s", out)
	}
}

// TestServersOfUnfinished: a recording whose recorder was killed has no ledger of axes, and its servers do not run all the same.
func TestServersOfUnfinished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	res, out := b.recordScene(&mcpScene{
		Servers: []mcpStart{{Argv: []string{path, "thing"}}}, Calls: []mcpCall{tool(0, "echo", map[string]any{"text": "a"})}, Print: 100,
	})
	b.gone(path)
	res.Recording.Manifest.State, res.Recording.Manifest.Axes = recording.StateRecording, map[string]recording.Axis{}
	if _, again := b.replay(res.Recording, nil); again != out {
		t.Errorf("the client said\n%s\nand on the replay\n%s", out, again)
	}
}

// gone removes a server's program.
func (b *bench) gone(path string) {
	b.t.Helper()
	if err := os.Remove(path); err != nil {
		b.t.Fatal(err)
	}
}

// again replays a recorded client in the same scene, and fails the test unless it is green and the client said the same: in whichever
// order its two streams met, for they pass apart.
func (b *bench) again(res *deck.Result, out string) {
	b.t.Helper()
	v, now := b.replay(res.Recording, nil)
	if !slices.Equal(sortedLines(now), sortedLines(out)) {
		b.t.Errorf("the client said\n%s\nand on the replay\n%s", out, now)
	}
	b.green(v)
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

// other replays a recorded client in another scene.
func (b *bench) other(res *deck.Result, s *mcpScene) (*deck.Verdict, string) {
	b.t.Helper()
	argv, _ := b.self("mcp-client", b.scene(s))
	v, out := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv, Patience: shortly})
	if v.Faithful() {
		b.t.Errorf("another talk was found to be the same; the client said\n%s", out)
	}
	return v, out
}

// one is a scene with one server.
func one(path string, calls ...mcpCall) *mcpScene {
	return &mcpScene{Servers: []mcpStart{{Argv: []string{path, "thing"}}}, Calls: calls}
}

// TestTalksWithServers records and replays clients whose servers are started and ended in many ways, and are gone on the replay.
func TestTalksWithServers(t *testing.T) {
	t.Parallel()
	echo := func(server int) mcpCall { return tool(server, "echo", map[string]any{"text": "hi"}) }
	for name, scene := range map[string]func(b *bench, path string) *mcpScene{
		"left running": func(_ *bench, path string) *mcpScene {
			s := one(path, echo(0))
			s.Leave = true
			return s
		},
		"killed": func(_ *bench, path string) *mcpScene {
			s := one(path, echo(0))
			s.Kill = true
			return s
		},
		"died while it was asked": func(_ *bench, path string) *mcpScene {
			return one(path, echo(0), tool(0, "die", map[string]any{"Code": 7}), echo(0))
		},
		"through a shell": func(_ *bench, path string) *mcpScene {
			s := one(path, echo(0))
			s.Servers[0].Argv = []string{"sh", "-c", "echo shell >&2; " + path + " thing; exit 3"}
			return s
		},
		"a shell that becomes it": func(_ *bench, path string) *mcpScene {
			s := one(path, echo(0))
			s.Servers[0].Argv = []string{"sh", "-c", "exec " + path + " thing"}
			return s
		},
		"through a script": func(b *bench, path string) *mcpScene {
			script := filepath.Join(filepath.Dir(path), "script")
			writeProgram(b.t, script, []byte("#!/bin/sh\nexec "+path+" thing\n"))
			s := one(path, echo(0))
			s.Servers[0].Argv = []string{script}
			return s
		},
		"along PATH": func(b *bench, path string) *mcpScene {
			b.env[0] = strings.Join([]string{"PATH=/usr/bin", filepath.Join(b.dir, "nothing"), filepath.Dir(path)}, ":")
			s := one(path, echo(0))
			s.Servers[0].Argv = []string{"/usr/bin/env", "-u", "NOTHING", filepath.Base(path), "thing"} // tries each directory
			return s
		},
		"two of one program": func(_ *bench, path string) *mcpScene {
			s := one(path, echo(0), echo(1), tool(1, "echo", map[string]any{"text": "second"}), echo(0))
			s.Servers = append(s.Servers, s.Servers[0])
			return s
		},
		"three at once": func(_ *bench, path string) *mcpScene {
			s := one(path, echo(2), echo(1), echo(0), echo(2))
			s.Servers = append(s.Servers, mcpStart{Argv: []string{path, "other"}}, mcpStart{Argv: []string{path, "third"}})
			return s
		},
	} {
		if rare(name, "left running", "a shell that becomes it", "through a script", "along PATH", "two of one program") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			path := b.server("thing-server")
			res, out := b.recordScene(scene(b, path))
			b.gone(path)
			b.again(res, out)
			if n := calls(t, res.Recording)["thing tools/call"]; n == 0 {
				t.Errorf("nothing of the talk is on the tape; the client said\n%s", out)
			}
		})
	}
}

// TestServersOfOneName have a lane each.
func TestServersOfOneName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	s := one(path, tool(0, "echo", 1), tool(1, "echo", 2), tool(1, "echo", 3))
	s.Servers = append(s.Servers, s.Servers[0])
	res, _ := b.recordScene(s)
	if got := calls(t, res.Recording); got["thing tools/call"] != 1 || got["thing#2 tools/call"] != 2 {
		t.Errorf("on the tape: %v", got)
	}
}

// TestOtherTalksDiverge: what a program says otherwise than it did is refused, and what it does not say was never asked for.
func TestOtherTalksDiverge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	first, second := tool(0, "echo", map[string]any{"path": "a.txt", "text": "x"}), tool(0, "echo", map[string]any{"path": "b.txt", "text": "y"})
	res, _ := b.recordScene(one(path, first, second))

	v, out := b.other(res, one(path, first, tool(0, "echo", map[string]any{"path": "c.txt", "text": "y"})))
	if len(v.Refused) != 1 || v.Refused[0].Method != "tools/call" || v.Refused[0].URL != "mcp:thing" {
		t.Errorf("refused: %+v", v.Refused)
	}
	if len(v.Unasked) != 1 || v.Unasked[0].Method != "tools/call" {
		t.Errorf("unasked: %+v", v.Unasked)
	}
	if !strings.Contains(out, `"error"`) || !strings.Contains(out, "not on the tape") || !strings.Contains(out, "path") {
		t.Errorf("the client was told\n%s", out)
	}

	v, _ = b.other(res, one(path, second))
	if len(v.Refused) != 0 || len(v.Unasked) != 1 {
		t.Errorf("of a call that was not made: refused %+v, unasked %+v", v.Refused, v.Unasked)
	}

	stranger := one(path, first, second)
	stranger.Servers = append(stranger.Servers, mcpStart{Argv: []string{path, "stranger"}})
	v, out = b.other(res, stranger)
	if len(v.Refused) != 1 || v.Refused[0].Method != "initialize" || !strings.Contains(out, "not on the tape") {
		t.Errorf("of a server that is on no tape: refused %+v; the client was told\n%s", v.Refused, out)
	}
}

// TestVariablesOfServersCompare: those that a client gives beyond its own are on the tape without secrets, and another is named.
func TestVariablesOfServersCompare(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	given := func(vars ...string) *mcpScene {
		s := one(path, tool(0, "echo", 1))
		s.Servers[0].Env = vars
		return s
	}
	const token = "THING_TOKEN=lt4Xw2Lk9Vb4Nm6Tr8Yp"
	res, out := b.recordScene(given("MODE=fast", token))
	for _, k := range kinds(t, res.Recording) {
		if o, ok := k.(*tape.MCPOpen); ok && (len(o.Env) != 3 || o.Env[0] != programVar+"=mcp-server" || o.Env[1] != "MODE=fast" ||
			!strings.HasPrefix(o.Env[2], "THING_TOKEN=td_")) {
			t.Errorf("given: %q", o.Env)
		}
	}
	searchFor(t, res.Recording.Dir, "lt4Xw2Lk9Vb4Nm6Tr8Yp")
	b.again(res, out)
	v, _ := b.other(res, given("MODE=slow", token))
	if len(v.Divergences) != 1 || v.Divergences[0].Category != fidelity.MCPOpenEnv {
		t.Errorf("%v, want one %s", v.Divergences, fidelity.MCPOpenEnv)
	}
}

// TestServersInAnotherOrder: each is still answered as itself.
func TestServersInAnotherOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	s := one(path, tool(0, "echo", "of the first"), tool(1, "echo", "of the second"))
	s.Servers = append(s.Servers, mcpStart{Argv: []string{path, "other"}})
	res, _ := b.recordScene(s)
	b.gone(path)
	s.Servers[0], s.Servers[1] = s.Servers[1], s.Servers[0]
	s.Calls[0].Server, s.Calls[1].Server = 1, 0
	argv, _ := b.self("mcp-client", b.scene(s))
	v, out := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv, Patience: shortly})
	if len(v.Refused)+len(v.Unasked) > 0 || !strings.Contains(out, "of the first") || !strings.Contains(out, "of the second") {
		t.Errorf("refused %+v, unasked %+v; the client said\n%s", v.Refused, v.Unasked, out)
	}
}

// TestServersChangeFiles: what a server changed is there on a replay, in which it does not run.
func TestServersChangeFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	s := one(path, tool(0, "echo", 1))
	s.Servers[0].Env = []string{"MCP_STARTED=" + filepath.Join(b.dir, "started")}
	res, out := b.recordScene(s)
	b.gone(path)
	if err := os.Remove(filepath.Join(b.dir, "started")); err != nil {
		t.Fatal(err)
	}
	b.again(res, out)
	if _, err := os.Stat(filepath.Join(b.dir, "started")); err == nil {
		t.Error("the replay left what the server had written")
	}
}

// TestCallsThatAreNotMadeChangeNothing: a file that a call made is there on a replay when the call is made, and not when it is not.
func TestCallsThatAreNotMadeChangeNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	first, made := tool(0, "echo", 1), tool(0, "make", map[string]any{"Name": "made"})
	s := one(path, first, made)
	s.Look = "made"
	res, out := b.recordScene(s)
	if !strings.Contains(out, "made is there: true") {
		t.Fatalf("the client said\n%s", out)
	}
	b.gone(path)
	if err := os.Remove(filepath.Join(b.dir, "made")); err != nil {
		t.Fatal(err)
	}
	b.again(res, out)
	s.Calls = s.Calls[:1]
	if v, out := b.other(res, s); !strings.Contains(out, "made is there: false") || len(v.Unasked) != 1 {
		t.Errorf("unasked %+v; the client said\n%s", v.Unasked, out)
	}
}

// TestToolsAreNoServers: what a program reads of the tools that it talks with by pipes, and in which order, is what it is without a
// recorder, and nothing of it is a talk with a server.
func TestToolsAreNoServers(t *testing.T) {
	t.Parallel()
	scripts := []string{
		"tr a-z A-Z", "echo to stderr >&2; cat; echo done >&2; exit 4", "exec 0<&-; sleep 0.01; echo read nothing", "head -n 1", "true", "kill -9 $$",
		`echo '{"jsonrpc":"2.0","id":1,"result":{}}'`, "cat | sort | cat",
	}
	b := newBench(t)
	argv, env := b.self("tools", scripts...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, b.dir
	bare, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	res, out := b.record("tools", scripts...)
	if out != string(bare) {
		t.Errorf("without a recorder it said\n%s\nwith one\n%s", bare, out)
	}
	for _, k := range kinds(t, res.Recording) {
		if strings.HasPrefix(k.Name(), "mcp_") {
			t.Errorf("%s is on the tape", k.Name())
		}
	}
	b.again(res, out)
}

// TestEditedCallsAreFound: a recorded call whose payload was replaced no longer holds.
func TestEditedCallsAreFound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.unsealed = true
	res, _ := b.recordScene(one(b.server("thing-server"), tool(0, "echo", "said")))
	path := filepath.Join(res.Recording.Dir, "run.tape")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var edited []string
	for line := range strings.Lines(string(text)) {
		if i := strings.Index(line, `"request_digest":"`); i >= 0 && strings.Contains(line, "tools/call") {
			i += len(`"request_digest":"`)
			line = line[:i] + strings.Repeat("ab", 32) + line[i+64:]
		}
		edited = append(edited, line)
	}
	if err := os.WriteFile(path, []byte(strings.Join(edited, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	v, err := verified(res.Recording.Dir)
	if err != nil || len(v.Problems) != 1 || !strings.Contains(v.Problems[0].Message, "request_digest") {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestTalksThatCannotBeWritten: a recorder that cannot write cuts its talks, and nothing is left running.
func TestTalksThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rec := filepath.Join(t.TempDir(), fmt.Sprintf("blocked-%d.rec", os.Getpid()))
	path := b.server(fmt.Sprintf("server-%d", os.Getpid()))
	s := one(path, tool(0, "echo", "a"))
	s.Forever = tool(0, "big", map[string]any{"Size": 1 << 16})
	argv, env := b.self("mcp-client", b.scene(s))
	block := &once{when: "tools/call", do: func() error {
		store := filepath.Join(rec, "run.tape.cas")
		return errors.Join(os.RemoveAll(store), os.WriteFile(store, nil, 0o600))
	}}
	_, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Output: rec, Streams: deck.Streams{Stdout: block},
	})
	var we *deck.WriteError
	if !errors.As(err, &we) || !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.EEXIST) || we.Records < 3 || we.Program != "was ended" {
		t.Errorf("%v", err)
	}
	if block.err != nil {
		t.Error(block.err)
	}
	b.nothingRuns(path)
}

// A once does something when it is written a text.
type once struct {
	when string
	do   func() error
	err  error
	done bool
}

// Write implements io.Writer.
func (o *once) Write(b []byte) (int, error) {
	if !o.done && strings.Contains(string(b), o.when) {
		o.done, o.err = true, o.do()
	}
	return len(b), nil
}

// TestDeadServersAreAskedNothing: a client that has seen the end of its server cannot ask it on a replay either, also while programs are
// started beside that, which have every file until their exec.
func TestDeadServersAreAskedNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	echo := tool(0, "echo", map[string]any{"text": "hi"})
	res, out := b.recordScene(one(b.server("thing-server"), echo, tool(0, "die", map[string]any{"Code": 7}), echo))
	ctx, stop := context.WithCancel(t.Context())
	var starts sync.WaitGroup
	starts.Go(func() {
		for ctx.Err() == nil {
			_ = exec.CommandContext(ctx, "true").Run() // of which nothing is wanted but the fork
		}
	})
	defer starts.Wait()
	defer stop()
	for range 5 { // it was a race
		b.again(res, out)
	}
}
