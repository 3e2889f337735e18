//go:build daemon

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// Our own client lives through a daemon that is killed: what it follows has no gap, its next run is recorded by the next daemon.
func TestOwnClientLivesThroughAKill(t *testing.T) {
	s := serve(t)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	dial := func() *client.Client {
		c, err := client.Dial(ctx, s.URL, &client.Options{TokenFile: s.TokenFile, AgentID: "ours", Patience: 30 * time.Second})
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	writer, reader := dial(), dial()
	run, err := writer.Start(ctx, rpcapi.RunsStartParams{Intent: "live on"})
	must(t, err)

	const some = 100
	read := make(chan struct{}) // closed when the reader has some turns
	trace := make(chan []client.Record, 1)
	go func() {
		var records []client.Record
		for r, err := range reader.Subscribe(ctx, run.ID, 0) {
			if err != nil {
				t.Error(err)
				break
			}
			if records = append(records, r); len(records) == some {
				close(read)
			}
		}
		trace <- records
	}()
	acknowledged := 0
	tool := "t"
	for ; err == nil; acknowledged++ {
		if acknowledged == some {
			<-read
			go s.kill()
		}
		_, err = run.RecordTurns(ctx, rpcapi.Turn{Tool: &tool})
	}
	acknowledged--
	if !errors.Is(err, client.ErrLost) {
		t.Fatal(err)
	}
	<-s.end
	s.again()

	records := <-trace
	last := records[len(records)-1]
	if n := len(records) - 2; n < acknowledged || last.Kind != "ended" {
		t.Errorf("%d turns were acknowledged; %d were followed, and then %s", acknowledged, n, last.JSON)
	}
	for i, r := range records {
		var turn rpcapi.Turn
		if r.Kind == "turn" {
			must(t, json.Unmarshal(r.JSON, &turn))
		}
		if r.Cursor != i+1 || r.Kind == "turn" && turn.Index != i-1 {
			t.Fatalf("record %d is %+v %s", i, r, r.JSON)
		}
	}
	_, err = run.RecordTurns(ctx, rpcapi.Turn{Tool: &tool})
	var dropped *client.DroppedError
	if !errors.As(err, &dropped) || dropped.Reason != "run_terminal" {
		t.Errorf("a turn of the run that ended with the daemon: %v", err)
	}
	next, err := writer.Start(ctx, rpcapi.RunsStartParams{Intent: "go on"})
	must(t, err)
	_, err = next.RecordTurns(ctx, rpcapi.Turn{Tool: &tool})
	must(t, err)
	must(t, next.Complete(ctx, rpcapi.Outcome{Status: "success"}))
	s.stop()
}
