package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// started is a daemon on a socket and on TCP; its tokens are where Dial finds them.
func started(t *testing.T, o daemon.Options) (socket, url string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "d")
	check(t, err)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	o.Listen, o.Socket, o.Data = "127.0.0.1:0", filepath.Join(dir, "s"), filepath.Join(dir, "data")
	ctx, stop := context.WithCancel(context.Background())
	d, err := daemon.Open(ctx, &o)
	check(t, err)
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the daemon: %v", err)
		}
		os.RemoveAll(dir)
		checkLeaks(t)
	})
	return "unix:" + o.Socket, d.URL()
}

func open(t *testing.T, url string, o *client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(soon(t), url, o)
	check(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestDaemonFindsTokensByURL(t *testing.T) {
	socket, url := started(t, daemon.Options{})
	for _, place := range []string{socket, url, "unix://" + socket[len("unix:"):]} {
		agent := open(t, place, &client.Options{AgentID: "a"})
		run, err := agent.Start(soon(t), rpcapi.RunsStartParams{Intent: "x"})
		check(t, err)
		host := open(t, place, &client.Options{Host: true})
		runs, err := host.Runs(soon(t), rpcapi.RunsListParams{})
		check(t, err)
		if len(runs) == 0 || runs[0].RunID != run.ID || agent.Server() == "" {
			t.Errorf("%s: got runs %+v of daemon %q", place, runs, agent.Server())
		}
		_, err = open(t, place, &client.Options{AgentID: "b"}).Start(soon(t), rpcapi.RunsStartParams{IdempotencyKey: run.ID})
		if err == nil {
			t.Error("the run of another is started again")
		}
		for _, err := range open(t, place, &client.Options{AgentID: "b"}).Subscribe(soon(t), run.ID, 0) {
			is(t, err, client.ErrNotFound)
		}
	}
	_, err := client.Dial(soon(t), url, &client.Options{TokenFile: os.DevNull})
	is(t, err, client.AuthRequired)
	_, err = client.Dial(soon(t), url, &client.Options{Token: "wrong"})
	is(t, err, client.ErrToken)
}

// Every method, once, with the daemon that there is.
func TestDaemonMethods(t *testing.T) {
	_, url := started(t, daemon.Options{Policies: []rpcapi.PolicyRule{{Name: "no_rm", Rule: "deny_tool", Target: "rm"}}})
	echo := client.Tool{Name: "echo", Description: "gives what it gets", Run: func(_ context.Context, call *client.ToolCall) (any, error) {
		return call.Parameters, nil
	}}
	c := open(t, url, &client.Options{AgentID: "a", Tools: []client.Tool{echo}})
	ctx := soon(t)

	tools, err := c.ListTools(ctx)
	check(t, err)
	if len(tools) != 1 || tools[0].Name != "echo" || tools[0].Description != "gives what it gets" {
		t.Errorf("got tools %+v", tools)
	}
	session, err := c.OpenPolicySession(ctx)
	check(t, err)
	for _, p := range []rpcapi.PolicyRegisterParams{
		{PolicyRule: rpcapi.PolicyRule{Name: "p", Rule: "require_state", Key: "k", Value: json.RawMessage(`1`)}},
		{PolicyRule: rpcapi.PolicyRule{Name: "q", Rule: "deny_tool", Target: "echo"}, SessionID: session},
	} {
		check(t, c.RegisterPolicy(ctx, p))
		list, err := c.Policies(ctx, p.SessionID)
		check(t, err)
		if len(list) == 0 || list[len(list)-1].Name != p.Name {
			t.Errorf("got policies %+v", list)
		}
	}

	run, err := c.Start(ctx, rpcapi.RunsStartParams{Intent: "x"})
	check(t, err)
	submit := func(p rpcapi.ProposalSubmitParams) string {
		p.Proposal = &rpcapi.Proposal{Actions: []rpcapi.Action{{Type: "tool_call", Tool: "echo", Parameters: json.RawMessage(`{"a":1}`)}}}
		res, err := c.SubmitAs(ctx, p)
		check(t, err)
		return res.Results[0].Status
	}
	state := c.State("")
	statuses := []string{submit(rpcapi.ProposalSubmitParams{})}
	check(t, state.Set(ctx, "k", 1))
	statuses = append(statuses, submit(rpcapi.ProposalSubmitParams{}), submit(rpcapi.ProposalSubmitParams{SessionID: session}))
	if want := []string{"rejected", "succeeded", "rejected"}; !slices.Equal(statuses, want) {
		t.Errorf("got %v, want %v", statuses, want)
	}
	closed, err := c.ClosePolicySession(ctx, session)
	check(t, err)
	removed, err := c.UnregisterPolicy(ctx, "p", "")
	check(t, err)
	gone, err := c.UnregisterTool(ctx, "echo")
	check(t, err)
	if !closed || removed != 1 || !gone {
		t.Errorf("got %t, %d, %t", closed, removed, gone)
	}

	check(t, c.State("t").Set(ctx, "l", "tenant's"))
	value, err := state.Get(ctx, "k")
	check(t, err)
	exists, err := state.Exists(ctx, "l")
	check(t, err)
	keys, err := state.Keys(ctx)
	check(t, err)
	snapshot, err := c.State("t").Snapshot(ctx)
	check(t, err)
	if string(value) != "1" || exists || !slices.Equal(keys, []string{"k"}) || len(snapshot) != 1 || string(snapshot["l"]) != `"tenant's"` {
		t.Errorf("got %s, %t, %q, %s", value, exists, keys, snapshot)
	}

	verdict, err := c.CheckPolicy(ctx, rpcapi.PolicyCheckParams{Tool: "rm", RunID: run.ID})
	check(t, err)
	verdicts, err := c.Verdicts(ctx, run.ID)
	check(t, err)
	if verdict.Verdict.Kind != "deny" || len(verdicts) != 4 {
		t.Errorf("got %+v and %d verdicts", verdict, len(verdicts))
	}
	check(t, run.Complete(ctx, rpcapi.Outcome{Status: "success"}))
	is(t, run.Complete(ctx, rpcapi.Outcome{Status: "success"}), client.Internal)
	_, err = run.RecordTurns(ctx, rpcapi.Turn{})
	var dropped *client.DroppedError
	if !errors.As(err, &dropped) || dropped.Reason != "run_terminal" {
		t.Errorf("got %v", err)
	}
	_, err = c.Start(ctx, rpcapi.RunsStartParams{AgentID: "../etc"})
	is(t, err, client.InvalidParams)
}

// A relay stands between a client and a daemon's socket, and can be cut.
type relay struct {
	l     net.Listener
	to    string
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(filepath.Dir(to), "relay"))
	check(t, err)
	r := &relay{l: l, to: to}
	r.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to)
			if err != nil {
				in.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, in, out)
			r.mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				r.wg.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.cut()
		r.wg.Wait()
	})
	return r
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

// Connections are lost again and again while turns are recorded and followed: the run stays open for it, and whoever follows it
// sees what was acknowledged, in order.
func TestDaemonConnectionsAreCut(t *testing.T) {
	socket, url := started(t, daemon.Options{NoAuth: true, Grace: time.Minute})
	r := newRelay(t, socket[len("unix:"):])
	cut := "unix:" + r.l.Addr().String()
	agent := open(t, cut, &client.Options{AgentID: "a"})
	follower := open(t, cut, &client.Options{AgentID: "a"})
	run, err := agent.Start(soon(t), rpcapi.RunsStartParams{Intent: "x"})
	check(t, err)

	followed := make(chan []client.Record, 1)
	go func() {
		var records []client.Record
		for record, err := range follower.Subscribe(soon(t), run.ID, 0) {
			if err != nil {
				t.Error(err)
				break
			}
			records = append(records, record)
		}
		followed <- records
	}()
	acknowledged := map[int]string{}
	tool := ""
	for n := range 400 {
		tool = string(rune('a' + n%26))
		base, err := run.RecordTurns(soon(t), rpcapi.Turn{Tool: &tool})
		switch {
		case err == nil:
			acknowledged[base] = tool
		case !errors.Is(err, client.ErrLost):
			t.Fatal(err)
		}
		if n%20 == 10 {
			r.cut()
		}
	}
	for err = client.ErrLost; errors.Is(err, client.ErrLost); {
		err = run.Complete(soon(t), rpcapi.Outcome{Status: "success"})
	}
	check(t, err)

	records := <-followed
	want := slices.Collect(func(yield func(client.Record) bool) {
		for record, err := range open(t, url, &client.Options{AgentID: "a"}).Records(soon(t), run.ID, 0) {
			check(t, err)
			if !yield(record) {
				return
			}
		}
	})
	if !slices.EqualFunc(records, want, func(a, b client.Record) bool { return a.Cursor == b.Cursor && string(a.JSON) == string(b.JSON) }) {
		t.Errorf("%d records were followed, and the trace has %d", len(records), len(want))
	}
	for index, tool := range acknowledged {
		var turn rpcapi.Turn
		check(t, json.Unmarshal(records[index+1].JSON, &turn))
		if turn.Index != index || *turn.Tool != tool {
			t.Errorf("turn %d is %s, want %s", index, records[index+1].JSON, tool)
		}
	}
	if len(acknowledged) < 300 || want[len(want)-1].Kind != "ended" {
		t.Errorf("%d turns of 400 were acknowledged; the last record is %+v", len(acknowledged), want[len(want)-1])
	}
}
