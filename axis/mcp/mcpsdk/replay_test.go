package mcpsdk_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp/mcpsdk"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A memoryTape is a tape in memory, and what writes to it.
type memoryTape struct {
	buf   bytes.Buffer
	store *cas.Memory
	rec   *tape.Recorder
}

func newMemoryTape(t testing.TB) *memoryTape {
	t.Helper()
	m := &memoryTape{store: cas.NewMemory()}
	w, err := tape.NewWriter(&m.buf, &tape.Header{Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	m.rec = tape.NewRecorder(w, &tape.RecorderOptions{Store: m.store})
	return m
}

func (m *memoryTape) book(t testing.TB, o *mcp.BookOptions) *mcp.Book {
	t.Helper()
	if err := m.rec.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := tape.NewReader(bytes.NewReader(m.buf.Bytes()), "test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := mcp.NewBook(r.Records(), m.store, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// serverCommand is this test's binary as the server.
func serverCommand() *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), runServer+"=1")
	return cmd
}

// relayed starts the server behind a Relay, and returns what its client uses and what waits for its end.
func relayed(t testing.TB, log *mcp.Log) (tr sdk.Transport, wait func() (exit int)) {
	t.Helper()
	var pipes [6]*os.File // read and write ends: client in, client out, server in, server out, ...
	for i := 0; i < len(pipes); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		pipes[i], pipes[i+1] = r, w
	}
	serverIn, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := serverCommand()
	cmd.Stdin, cmd.Stdout = serverIn, pipes[5]
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serverIn.Close()
	pipes[5].Close()
	ended := make(chan error, 1)
	go func() {
		c, err := mcp.Relay(context.Background(), &mcp.RelayOptions{
			Log: log, Opened: &mcp.Opened{Transport: mcp.Stdio, Program: cmd.Path, Args: cmd.Args[1:]},
			ClientIn: pipes[0], ClientOut: pipes[3], ServerIn: toServer, ServerOut: pipes[4],
		})
		_ = cmd.Wait() // its status is looked at
		if err == nil {
			err = c.End(mcp.Ended{Exited: true, ExitCode: exitStatus(cmd)})
		}
		ended <- err
	}()
	return &sdk.IOTransport{Reader: pipes[2], Writer: pipes[1]}, func() int {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		return exitStatus(cmd)
	}
}

// exitStatus is how a process ended. A client that goes while its server says something ends it by a SIGPIPE.
func exitStatus(cmd *exec.Cmd) int {
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 128 + 13
}

// session connects a client.
func session(t testing.TB, c *sdk.Client, tr sdk.Transport, version string) *sdk.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cs, err := c.Connect(ctx, tr, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// differ tells where two runs of a scene differ; "" for nowhere.
func differ(was, now []string) string {
	for i := range max(len(was), len(now)) {
		if i >= len(was) || i >= len(now) || was[i] != now[i] {
			return fmt.Sprintf("recorded: %s\nreplayed: %s", slices.Concat(was, []string{"nothing"})[min(i, len(was))], slices.Concat(now, []string{"nothing"})[min(i, len(now))])
		}
	}
	return ""
}

// A server in a process of its own is recorded with everything that it does, and answers the same client the same from the tape, in
// every version of the protocol.
func TestReplayOfAProcess(t *testing.T) {
	t.Parallel()
	for _, version := range sdk.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			m := newMemoryTape(t)
			var was, now heard
			tr, wait := relayed(t, mcp.NewLog(m.rec, nil, nil, nil))
			cs := session(t, newClient(&was), tr, version)
			recorded := scene(t, ctx, cs, &was, "one")
			cs.Close()
			ended := wait()
			b := m.book(t, nil)
			rec := b.Servers()[0]
			served, why := b.Spawn("/elsewhere/"+rec.Program[strings.LastIndexByte(rec.Program, '/')+1:], rec.Args)
			if served == nil {
				t.Fatal(why)
			}
			exit := make(chan int, 1)
			answers := &mcpsdk.AnswerTransport{Served: served, Ended: func(e int, err error) {
				if err != nil {
					t.Error(err)
				}
				exit <- e
			}}
			cs = session(t, newClient(&now), answers, version)
			replayed := scene(t, ctx, cs, &now, "two")
			cs.Close()
			for i := range recorded { // the names of this run
				recorded[i] = strings.Replace(recorded[i], `progress ["one"`, `progress ["two"`, 1)
			}
			if d := differ(recorded, replayed); d != "" {
				t.Error(d)
			}
			if got := <-exit; got != ended {
				t.Errorf("the server ended with %d, want %d as it did", got, ended)
			}
			if un, ref := b.Unasked(), b.Refused(); len(un)+len(ref) > 0 {
				t.Errorf("unasked %v, refused %v", un, ref)
			}
		})
	}
}

// 32 calls at once, answered out of order: each gets its own answer, in every round.
func TestTogether(t *testing.T) {
	t.Parallel()
	rounds := 20
	if os.Getenv("TAPEDECK_LONG") != "" {
		rounds = 100
	}
	m := newMemoryTape(t)
	tr, wait := relayed(t, mcp.NewLog(m.rec, nil, nil, nil))
	cs := session(t, newClient(new(heard)), tr, "")
	allTogether(t, cs, rounds, false)
	cs.Close()
	wait()
	b := m.book(t, nil)
	rec := b.Servers()[0]
	served, why := b.Spawn(rec.Program, rec.Args)
	if served == nil {
		t.Fatal(why)
	}
	again := newMemoryTape(t)
	log := mcp.NewLog(again.rec, nil, nil, nil).Begin(&mcp.Opened{Transport: mcp.Stdio, Recorded: served.Recorded()})
	cs = session(t, newClient(new(heard)), &mcpsdk.AnswerTransport{Served: served, Options: &mcp.ServeOptions{Log: log}}, "")
	allTogether(t, cs, rounds, true)
	cs.Close()
	if un, ref := b.Unasked(), b.Refused(); len(un)+len(ref) > 0 {
		t.Errorf("unasked %v, refused %v", un, ref)
	}
	if was, now := answersOf(t, m), answersOf(t, again); !slices.Equal(was, now) {
		t.Errorf("the tape of the replay has other answers, or in another order")
	}
}

// allTogether makes 32 calls at once, and counts those that get another's answer. In reverse the last is made first.
func allTogether(t *testing.T, cs *sdk.ClientSession, rounds int, reverse bool) {
	t.Helper()
	for round := range rounds {
		var all sync.WaitGroup
		for i := range together {
			if reverse {
				i = together - 1 - i
			}
			all.Go(func() {
				text := fmt.Sprintf("round %d call %d", round, i)
				res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "together", Arguments: map[string]any{"text": text}})
				if err != nil {
					t.Error(err)
				} else if got := res.Content[0].(*sdk.TextContent).Text; got != "for "+text {
					t.Errorf("%s got the answer %s", text, got)
				}
			})
		}
		all.Wait()
	}
}

// answersOf lists the results on a tape, in the order in which they were given.
func answersOf(t *testing.T, m *memoryTape) (out []string) {
	t.Helper()
	if err := m.rec.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := tape.NewReader(bytes.NewReader(m.buf.Bytes()), "test")
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := rec.Kind.(*tape.MCPJSONRPC); ok && k.Method == "tools/call" {
			out = append(out, k.ParamsDigest.String()+" "+k.ResultDigest.String())
		}
	}
	return out
}

// A recording by RecordTransport answers as one of a process does.
func TestRecordTransport(t *testing.T) {
	t.Parallel()
	m := newMemoryTape(t)
	var was, now heard
	tr := &mcpsdk.RecordTransport{Transport: &sdk.CommandTransport{Command: serverCommand()}, Log: mcp.NewLog(m.rec, nil, nil, nil)}
	cs := session(t, newClient(&was), tr, "2025-06-18")
	recorded := scene(t, t.Context(), cs, &was, "one")
	cs.Close()
	b := m.book(t, nil)
	rec := b.Servers()[0]
	if rec.Server != "everything" || rec.Program != os.Args[0] || !slices.Equal(rec.Args, []string{"-test.run=^$"}) || rec.Protocol != "2025-06-18" {
		t.Errorf("recorded %+v", rec)
	}
	cs = session(t, newClient(&now), &mcpsdk.AnswerTransport{Served: b.Conversation(1)}, "2025-06-18")
	replayed := scene(t, t.Context(), cs, &now, "one")
	cs.Close()
	if d := differ(recorded, replayed); d != "" {
		t.Error(d)
	}
}
