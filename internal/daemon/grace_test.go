package daemon

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/door"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// doorless is a daemon without a door, whose clients are pipes, for tests of time. It lives within a bubble of synctest.
func doorless(t *testing.T, o Options) *Daemon {
	t.Helper()
	d, err := prepare(&o)
	if err != nil {
		t.Fatal(err)
	}
	if d.store, err = store.Open(context.Background(), t.TempDir(), &store.Options{FS: faultfs.NewMemory()}); err != nil {
		t.Fatal(err)
	}
	close(d.opened)
	close(d.live)
	t.Cleanup(func() {
		d.cut()
		synctest.Wait()
		d.runs.flush()
		if err := d.store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// pipe returns the two ends of a stream in memory.
func pipe() (near, far jsonrpc.Stream) {
	a, b := net.Pipe()
	return jsonrpc.NewLines(a, 64<<20, nil), jsonrpc.NewLines(b, 64<<20, nil)
}

// dial connects a client; hang ends the connection and waits until the daemon knows.
func (d *Daemon) dial(t *testing.T) (c *jsonrpc.Conn, hang func()) {
	ours, theirs := pipe()
	c = jsonrpc.New(ours, nil)
	go func() { _ = c.Serve(context.Background()) }()
	go d.converse(d.serving, theirs, door.Peer{Transport: "pipe"})
	return c, func() {
		c.Close(jsonrpc.CloseNormal, "")
		synctest.Wait()
	}
}

func ask(t *testing.T, c *jsonrpc.Conn, method, params string) string {
	t.Helper()
	var out json.RawMessage
	if err := c.Call(context.Background(), c.NewID(), method, json.RawMessage(params), &out); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return string(out)
}

func (d *Daemon) status(t *testing.T, run string) runtrace.Status {
	t.Helper()
	found, err := d.store.Find(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	return found.Status
}

func TestARunWhoseConnectionWentAwayIsGivenUpAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true, Grace: 2 * time.Second})
		c, hang := d.dial(t)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"done"}`)
		ask(t, c, rpcapi.RunsComplete, `{"run_id":"done","outcome":{"status":"done"}}`)
		hang()
		time.Sleep(2*time.Second - 1)
		synctest.Wait()
		if got := d.status(t, "r"); got != runtrace.InProgress {
			t.Errorf("within the grace: %s", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := d.status(t, "r"); got != runtrace.Incomplete {
			t.Errorf("after the grace: %s", got)
		}
		if got := d.status(t, "done"); got != runtrace.Completed {
			t.Errorf("the completed one: %s", got)
		}
		if n := d.runs.len(); n != 0 {
			t.Errorf("%d runs are held", n)
		}
	})
}

func TestARunThatIsTakenUpWithinTheGraceStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true, Grace: 2 * time.Second})
		c, hang := d.dial(t)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		hang()
		time.Sleep(1900 * time.Millisecond)
		stranger, bye := d.dial(t)
		if err := stranger.Call(context.Background(), stranger.NewID(), rpcapi.RunsStart,
			json.RawMessage(`{"agent_id":"b","idempotency_key":"r"}`), nil); err == nil {
			t.Error("another agent took it")
		}
		c, hang = d.dial(t)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		time.Sleep(time.Minute)
		if got := d.status(t, "r"); got != runtrace.InProgress {
			t.Fatalf("taken up: %s", got)
		}
		if got := ask(t, c, rpcapi.RunsRecordTurns, `{"run_id":"r","turns":[{}]}`); got != `{"run_id":"r","base_index":0,"count":1,"ok":true}` {
			t.Error(got)
		}
		hang()
		bye()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := d.status(t, "r"); got != runtrace.Incomplete {
			t.Errorf("after the second grace: %s", got)
		}
	})
}

func TestARunOfTwoConnectionsIsOpenWhileOneIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true, Grace: -1})
		one, hangOne := d.dial(t)
		two, hangTwo := d.dial(t)
		ask(t, one, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		ask(t, two, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		hangOne()
		if got := d.status(t, "r"); got != runtrace.InProgress {
			t.Errorf("one went away: %s", got)
		}
		hangTwo()
		if got := d.status(t, "r"); got != runtrace.Incomplete {
			t.Errorf("both went away, without a grace: %s", got)
		}
	})
}

func TestAConnectionThatDoesNotSignInIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{})
		began := time.Now()
		c, hang := d.dial(t)
		<-c.Context().Done()
		if took := time.Since(began); took < authWithin || took > authWithin+2*time.Second {
			t.Errorf("closed after %v", took)
		}
		hang()
	})
}

// TestAToolWithoutATimeoutHasTheDaemons lets a tool never answer.
func TestAToolWithoutATimeoutHasTheDaemons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true})
		ours, theirs := pipe()
		cancelled := make(chan string, 1)
		c := jsonrpc.New(ours, &jsonrpc.Options{Handler: func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			if r.Method == rpcapi.ToolsCancel {
				cancelled <- string(r.Params)
				return nil, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		go func() { _ = c.Serve(context.Background()) }()
		go d.converse(d.serving, theirs, door.Peer{})
		ask(t, c, rpcapi.ToolsRegister, `[{"name":"drive_cli"}]`)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		began := time.Now()
		out := ask(t, c, rpcapi.ProposalSubmit, `{"proposal":{"actions":[{"id":"x","type":"tool_call","tool":"drive_cli"}]}}`)
		if took := time.Since(began); took != 5*time.Minute {
			t.Errorf("it took %v: %s", took, out)
		}
		if got, want := <-cancelled, `{"request_id":"cb-1","action_id":"x","reason":"tool 'drive_cli' callback timed out (300s)"}`; got != want {
			t.Errorf("%s", got)
		}
		if got := ask(t, c, rpcapi.RunsGetTrace, `{"run_id":"r","cursor":1}`); !strings.Contains(got, `"cli_outcome":{"outcome":"timeout"}`) {
			t.Errorf("its turn does not say that it ran out of time: %s", got)
		}
		c.Close(jsonrpc.CloseNormal, "")
		synctest.Wait()
	})
}
