package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A fake is a daemon in memory behind a Unix socket, with hooks for what a real one does only when it is in trouble.
type fake struct {
	t    *testing.T
	path string
	l    net.Listener
	wg   sync.WaitGroup

	// answer, where it is set, is asked first; handled says that it answered.
	answer func(ctx context.Context, r *jsonrpc.Request) (result any, handled bool, err error)

	mu    sync.Mutex
	token string
	conns map[*jsonrpc.Conn]bool
	log   []string // methods, as they came
	runs  map[string][]string
	drop  map[string]bool // runs whose events are lost
	subs  map[*jsonrpc.Conn]map[string]bool
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		t: t, path: filepath.Join(t.TempDir(), "s"), conns: map[*jsonrpc.Conn]bool{}, runs: map[string][]string{},
		drop: map[string]bool{}, subs: map[*jsonrpc.Conn]map[string]bool{},
	}
	f.listen()
	t.Cleanup(func() {
		f.stop()
		checkLeaks(t)
	})
	return f
}

func (f *fake) url() string { return "unix:" + f.path }

func (f *fake) listen() {
	l, err := net.Listen("unix", f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	f.l = l
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.wg.Add(1)
			go f.serve(conn)
		}
	}()
}

func (f *fake) serve(conn io.ReadWriteCloser) {
	defer f.wg.Done()
	peer := jsonrpc.New(jsonrpc.NewLines(conn, 0, nil), &jsonrpc.Options{Handler: f.handle})
	f.mu.Lock()
	f.conns[peer] = true
	f.mu.Unlock()
	_ = peer.Serve(context.Background())
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, peer)
	delete(f.subs, peer)
}

// cut ends every connection; nobody is let in until listen.
func (f *fake) stop() {
	f.l.Close()
	f.cut()
	f.wg.Wait()
}

func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close(jsonrpc.CloseGoingAway, "")
	}
}

// peers are the connections of now.
func (f *fake) peer() *jsonrpc.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		return c
	}
	f.t.Fatal("nobody is connected")
	return nil
}

func (f *fake) methods() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.log, " ")
}

// add appends records to a run and tells its subscribers.
func (f *fake) add(run string, records ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, record := range records {
		f.runs[run] = append(f.runs[run], record)
		for c, runs := range f.subs {
			if runs[run] && !f.drop[run] {
				_ = c.Notify(rpcapi.RunsTraceEvent, rpcapi.RunsTraceEventParams{RunID: run, Record: json.RawMessage(record), Cursor: len(f.runs[run]) - 1})
			}
		}
	}
}

func turnRecord(n int) string { return fmt.Sprintf(`{"record":"turn","index":%d}`, n) }

const endedRecord = `{"record":"ended","status":"completed"}`

func (f *fake) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	f.mu.Lock()
	f.log = append(f.log, r.Method)
	f.mu.Unlock()
	if f.answer != nil {
		if result, handled, err := f.answer(ctx, r); handled {
			return result, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.Method {
	case rpcapi.SessionAuth:
		var p rpcapi.SessionAuthParams
		decode(r, &p)
		if f.token != "" && p.Token != f.token {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "auth failed: token mismatch")
		}
		return rpcapi.SessionAuthResult{OK: true}, nil
	case rpcapi.ServerHandshake:
		return rpcapi.HandshakeResult{ProtocolVersion: rpcapi.ProtocolVersion, ServerVersion: "fake"}, nil
	case rpcapi.RunsStart:
		var p rpcapi.RunsStartParams
		decode(r, &p)
		id := p.IdempotencyKey
		if id == "" {
			id = fmt.Sprintf("run-%d", len(f.runs))
		}
		if f.runs[id] == nil {
			f.runs[id] = []string{`{"record":"started"}`}
		}
		return rpcapi.RunsStartResult{RunID: id, AgentID: "agent"}, nil
	case rpcapi.RunsGetTrace:
		var p rpcapi.RunsGetTraceParams
		decode(r, &p)
		res := rpcapi.RunsGetTraceResult{RunID: p.RunID, NotFound: f.runs[p.RunID] == nil}
		for _, record := range f.runs[p.RunID][min(p.Cursor, len(f.runs[p.RunID])):] {
			res.Records = append(res.Records, json.RawMessage(record))
		}
		return res, nil
	case rpcapi.RunsSubscribe:
		var p rpcapi.RunParams
		decode(r, &p)
		if f.runs[p.RunID] == nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "run not found")
		}
		if f.subs[r.Conn] == nil {
			f.subs[r.Conn] = map[string]bool{}
		}
		f.subs[r.Conn][p.RunID] = true
		return rpcapi.RunsSubscribeResult{RunID: p.RunID, Status: "in_progress"}, nil
	case rpcapi.RunsUnsubscribe:
		var p rpcapi.RunParams
		decode(r, &p)
		delete(f.subs[r.Conn], p.RunID)
		return rpcapi.RunsUnsubscribeResult{RunID: p.RunID, Removed: true}, nil
	case rpcapi.ToolsRegister, rpcapi.PolicyRegister, rpcapi.RunsComplete, rpcapi.StateSet:
		return struct{}{}, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "unknown method: %s", r.Method)
}

func decode(r *jsonrpc.Request, v any) {
	if err := json.Unmarshal(r.Params, v); err != nil {
		panic(err)
	}
}

// execute calls a tool back, as the daemon does for a proposal.
func (f *fake) execute(ctx context.Context, tool, parameters string, more func(*rpcapi.ToolsExecuteParams)) (output json.RawMessage, err error) {
	peer := f.peer()
	id := peer.NewID()
	p := rpcapi.ToolsExecuteParams{ActionID: "a", Tool: tool, Parameters: json.RawMessage(parameters), Attempt: 1, RequestID: id}
	if more != nil {
		more(&p)
	}
	err = peer.Call(ctx, id, rpcapi.ToolsExecute, p, &output)
	return output, err
}

// dial connects to a fake; the client is closed before it.
func dial(t *testing.T, f *fake, o *client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(soon(t), f.url(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// soon is a context for what must not take long.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// checkLeaks fails where a goroutine of the client or of its conversation is left.
func checkLeaks(t *testing.T) {
	t.Helper()
	var left string
	for range 200 {
		if left = ours(); left == "" {
			return
		}
		time.Sleep(10 * time.Millisecond) // the runtime gives no signal of a goroutine's end
	}
	t.Errorf("goroutines are left:\n%s", left)
}

func ours() string {
	b := make([]byte, 1<<20)
	var left []string
	for g := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(g, "ours()") || strings.Contains(g, "testing.(*T)") || strings.Contains(g, "testing.tRunner") {
			continue
		}
		if strings.Contains(g, "tapedeck/client.") || strings.Contains(g, "internal/jsonrpc.") || strings.Contains(g, "coder/websocket") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, target := range want {
		if !errors.Is(err, target) {
			t.Fatalf("got error %v, want %v", err, target)
		}
	}
}

type rawJSON = json.RawMessage
