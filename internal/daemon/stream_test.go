package daemon_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

func (p *peer) subscribe(run string) rpcapi.RunsSubscribeResult {
	p.t.Helper()
	var out rpcapi.RunsSubscribeResult
	p.must(rpcapi.RunsSubscribe, rpcapi.RunParams{RunID: run}, &out)
	return out
}

func (p *peer) event() rpcapi.RunsTraceEventParams {
	p.t.Helper()
	n := p.next()
	var e rpcapi.RunsTraceEventParams
	if err := json.Unmarshal(n.Params, &e); err != nil || n.Method != rpcapi.RunsTraceEvent {
		p.t.Fatalf("%s %s", n.Method, n.Params)
	}
	return e
}

// TestSnapshotAndStreamMeet subscribes while turns are being written, many times: each turn is in the snapshot or in the
// stream, once, in order.
func TestSnapshotAndStreamMeet(t *testing.T) {
	for _, data := range []string{"", t.TempDir()} {
		r := start(t, &daemon.Options{Data: data})
		writer := r.as("a")
		run := writer.startRun(rpcapi.RunsStartParams{}).RunID
		const total = 300
		go func() {
			for range total / 3 {
				if _, err := writer.try(rpcapi.RunsRecordTurns, json.RawMessage(`{"run_id":"`+run+`","turns":[{},{},{}]}`)); err != nil {
					t.Errorf("record: %v", err)
				}
			}
			if _, err := writer.try(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`","outcome":{"status":"done"}}`)); err != nil {
				t.Errorf("complete: %v", err)
			}
		}()
		for range 8 {
			reader := r.as("a")
			at := reader.subscribe(run)
			if len(at.TurnsSoFar) != at.Cursor || at.AgentID != "a" || at.TurnsSoFar == nil {
				t.Fatalf("%d turns, cursor %d", len(at.TurnsSoFar), at.Cursor)
			}
			records := at.TurnsSoFar
			for at.Status == "in_progress" {
				e := reader.event()
				if strings.Contains(string(e.Record), `"record":"ended"`) {
					if e.Cursor != total+1 || e.Status != "completed" {
						t.Errorf("ended: %+v", e)
					}
					var again rpcapi.RunsGetTraceResult // from there on it is told again
					reader.must(rpcapi.RunsGetTrace, rpcapi.RunsGetTraceParams{RunID: run, Cursor: e.Cursor}, &again)
					if len(again.Records) != 1 || string(again.Records[0]) != string(e.Record) || again.Status != "completed" {
						t.Errorf("from its cursor on: %+v", again)
					}
					break
				}
				records = append(records, e.Record)
				if e.Cursor != len(records) || e.RunID != run || e.AgentID != "a" || e.Status != "in_progress" {
					t.Fatalf("event %d: %+v", len(records), e)
				}
			}
			tr := turns(t, reader.trace(run))
			if len(records) != total || len(tr) != total {
				t.Fatalf("%d and %d of %d", len(records), len(tr), total)
			}
			for i := range tr {
				if tr[i] != string(records[i]) {
					t.Fatalf("turn %d: %s and %s", i, tr[i], records[i])
				}
			}
		}
	}
}

func TestNoEventComesBeforeTheReply(t *testing.T) {
	r := start(t, nil)
	writer := r.as("a")
	run := writer.startRun(rpcapi.RunsStartParams{}).RunID
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = writer.try(rpcapi.RunsRecordTurns, json.RawMessage(`{"run_id":"`+run+`","turns":[{}]}`))
			}
		}
	}()
	for range 50 {
		p := r.plain()
		p.send(`{"jsonrpc":"2.0","id":1,"method":"session.auth","params":{"token":"` + r.token(false) + `","agent_id":"a"}}`)
		p.send(`{"jsonrpc":"2.0","id":2,"method":"runs.subscribe","params":{"run_id":"` + run + `"}}`)
		_, _ = p.read()
		if frame, _ := p.read(); !strings.HasPrefix(frame, `{"jsonrpc":"2.0","id":2,"result":{"run_id":"`) {
			t.Fatalf("first came %s", frame)
		}
		_ = p.ws.CloseNow()
	}
	close(stop)
	<-done
}

func TestReadsNeedARunAndACursorThatCanBe(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsUnsubscribe, json.RawMessage(`{}`))
	p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsGetTrace, rpcapi.RunsGetTraceParams{RunID: run, Cursor: -1})
}

func TestUnsubscribeAndSubscribeAgain(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	p.subscribe(run)
	p.record(run, 1)
	if e := p.event(); e.Cursor != 1 {
		t.Fatalf("%+v", e)
	}
	if again := p.subscribe(run); again.Cursor != 1 {
		t.Fatalf("%+v", again)
	}
	p.record(run, 1)
	if e := p.event(); e.Cursor != 2 { // once, though it was subscribed twice
		t.Fatalf("%+v", e)
	}
	var out rpcapi.RunsUnsubscribeResult
	for _, want := range []bool{true, false} {
		p.must(rpcapi.RunsUnsubscribe, rpcapi.RunParams{RunID: run}, &out)
		if out.Removed != want || out.RunID != run {
			t.Errorf("%+v", out)
		}
	}
	p.record(run, 1)
	p.must(rpcapi.ToolsList, nil, nil)
	if len(p.news) != 0 {
		t.Errorf("an event came after unsubscribing")
	}
	p.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`","outcome":{"status":"done"}}`), nil)
	if at := p.subscribe(run); at.Status != "completed" || at.Cursor != 3 {
		t.Errorf("%+v", at)
	}
	p.refused(rpcapi.CodeInternal, rpcapi.RunsSubscribe, rpcapi.RunParams{RunID: "none"})
}

// TestASlowSubscriberIsTold lets one read nothing while a run gets more than the daemon keeps for it.
func TestASlowSubscriberIsTold(t *testing.T) {
	r := start(t, &daemon.Options{Limits: daemon.Limits{QueueBytes: 64 << 10, WriteTimeout: time.Hour}}) // what is told is no matter of seconds
	writer := r.as("a")
	run := writer.startRun(rpcapi.RunsStartParams{}).RunID
	slow := r.plain()
	slow.send(`{"jsonrpc":"2.0","id":1,"method":"session.auth","params":{"token":"` + r.token(false) + `","agent_id":"a"}}`)
	_, _ = slow.read()
	slow.send(`{"jsonrpc":"2.0","id":2,"method":"runs.subscribe","params":{"run_id":"` + run + `"}}`)
	_, _ = slow.read()
	const total = 800
	batch := `{"run_id":"` + run + `","turns":[` + strings.Repeat(`{"output":"`+strings.Repeat("x", 16000)+`"},`, 9) + `{}]}`
	for range total / 10 {
		writer.must(rpcapi.RunsRecordTurns, json.RawMessage(batch), nil)
	}
	writer.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`","outcome":{"status":"done"}}`), nil)

	next, lost := 1, 0 // the index of the record that must come next
	for next < total+2 {
		frame, code := slow.read()
		if code != 0 {
			t.Fatalf("closed with %d at record %d", code, next)
		}
		var n struct {
			Method string
			Params struct {
				Cursor, Lost int
			}
		}
		if err := json.Unmarshal([]byte(frame), &n); err != nil {
			t.Fatal(err)
		}
		if at := n.Params.Cursor; at != next {
			t.Fatalf("record %d came, %d was expected", at, next)
		}
		if n.Method == rpcapi.RunsTraceLost {
			lost += n.Params.Lost
			next += n.Params.Lost
			continue
		}
		next++
	}
	if lost == 0 {
		t.Error("nothing was lost: this subscriber was not slow")
	}
	t.Logf("%d of %d events were lost", lost, total)
}
