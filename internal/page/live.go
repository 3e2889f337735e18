package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// How often a tape that grows is looked at, and how long a page is left alone between two tellings, which it answers by asking for what
// has changed.
const pollEvery, tellEvery = 200 * time.Millisecond, time.Second

// live tells a page how a run grows, until it has ended. Of one that is not being recorded there is nothing to tell: that status has a page
// not ask again.
func (s *Stacks) live(w http.ResponseWriter, r *http.Request, id string) {
	src, err := s.source(id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if src.rec.Finished() || src.rec.Live() != recording.LiveYes {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	s.follow(r.Context(), src.rec, func(event string, rows int) error {
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %d\n\n", event, rows); err != nil {
			return err
		}
		return out.Flush()
	})
}

// follow tells of each growth of a recording, and of its end, until who is told has gone.
func (s *Stacks) follow(ctx context.Context, rec *recording.Recording, tell func(event string, rows int) error) {
	rows := &rowCount{path: rec.TapePath(), n: -1} // the header is none
	if rows.count(); tell("grown", rows.n) != nil {
		return
	}
	tick := time.NewTicker(s.poll)
	defer tick.Stop()
	told, fresh := time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		fresh = rows.count() || fresh
		if ended := rec.Live() != recording.LiveYes; ended {
			_ = tell("ended", rows.n) // who has gone needs it no more
			return
		}
		if fresh && time.Since(told) >= s.tell {
			if told, fresh = time.Now(), false; tell("grown", rows.n) != nil {
				return
			}
		}
	}
}

// A rowCount counts the lines of a file that grows.
type rowCount struct {
	path string
	at   int64
	n    int
}

// count counts what has come, and reports whether there was any.
func (c *rowCount) count() bool {
	f, err := regular.Open(c.path)
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := f.Seek(c.at, io.SeekStart); err != nil {
		return false
	}
	was, buf := c.n, make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		c.n, c.at = c.n+bytes.Count(buf[:n], []byte("\n")), c.at+int64(n)
		if err != nil {
			return c.n > was
		}
	}
}

// A Daemon is asked by a server for the runs that it traces and for what waits there for a person. It subscribes to nothing: a page that is
// open holds no agent up.
type Daemon struct {
	Client *client.Client // with the host's token
	URL    string
}

// How long a page waits for a daemon, and how much of it is shown.
const (
	askDaemon   = 5 * time.Second
	maxRunsSeen = 500
	maxFieldSee = 8 << 10 // bytes of a text of a turn
)

// view makes daemon.json. What a daemon fails of stands there: it may come back.
func (d *Daemon) view(ctx context.Context) (*DaemonView, error) {
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	out := &DaemonView{Name: d.URL, Runs: []DaemonRun{}, Intents: []DaemonIntent{}}
	runs, err := d.Client.Runs(ctx, rpcapi.RunsListParams{Limit: maxRunsSeen})
	var waiting []rpcapi.Intent
	if err == nil {
		waiting, err = d.Client.Pending(ctx)
	}
	if err != nil {
		out.Error = err.Error()
		return out, nil
	}
	for i := range runs {
		out.Runs = append(out.Runs, daemonRun(&runs[i]))
	}
	for i := range waiting {
		out.Intents = append(out.Intents, daemonIntent(&waiting[i]))
	}
	return out, nil
}

func daemonRun(r *rpcapi.RunInfo) DaemonRun {
	out := DaemonRun{ID: r.RunID, Agent: r.AgentID, Intent: r.Intent, Status: r.Status, Started: r.StartedAt.UnixMilli(), Turns: r.TurnCount}
	if r.EndedAt != nil {
		out.Ended = r.EndedAt.UnixMilli()
	}
	return out
}

func daemonIntent(in *rpcapi.Intent) DaemonIntent {
	out := DaemonIntent{
		ID: in.IntentID, Agent: in.AgentID, Run: in.RunID, Reason: in.Reason, Policies: in.Policies, Deadline: in.Deadline.UnixMilli(), Escalated: in.Escalated,
	}
	for _, a := range in.Actions {
		tool := a.Tool
		if tool == "" {
			tool = a.Type
		}
		out.Actions = append(out.Actions, DaemonAction{Tool: tool, Keys: a.ParameterKeys, Digest: a.ParamsDigest})
	}
	return out
}

// trace makes daemon/run/ID.json.
func (d *Daemon) trace(ctx context.Context, id string) (*DaemonTrace, error) {
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	var run runview.Run
	for rec, err := range d.Client.Records(ctx, id, 0) {
		switch {
		case errors.Is(err, client.ErrNotFound):
			return nil, ErrNoDocument
		case err != nil:
			return nil, err
		}
		if err := run.AddLine(rec.JSON); err != nil {
			return nil, err
		}
	}
	out := &DaemonTrace{
		Run:       DaemonRun{ID: run.ID, Agent: run.Agent, Intent: run.Intent, Status: run.Status, Started: run.Started.UnixMilli(), Turns: len(run.Turns)},
		Recording: run.Recording, Turns: []DaemonTurn{},
	}
	if !run.Ended.IsZero() {
		out.Run.Ended = run.Ended.UnixMilli()
		_, _, out.Outcome = run.End()
	}
	for i := range run.Turns {
		out.Turns = append(out.Turns, daemonTurn(&run.Turns[i]))
	}
	return out, nil
}

func daemonTurn(t *runview.Turn) DaemonTurn {
	out := DaemonTurn{
		Index: t.Index, Tool: t.Tool, Prompt: t.Prompt, Params: daemonFields(t.Params), Output: daemonFields(t.Output), Mark: t.Label,
		Bad: t.Mark == runview.Failed || t.Mark == runview.TimedOut || t.Mark == runview.Rejected,
	}
	switch {
	case t.Rule != "":
		out.Why = t.Rule + ": " + t.Reason
	case t.Error != nil:
		out.Why = t.Error.Text
	}
	return out
}

func daemonFields(of []runview.Field) []DaemonField {
	out := make([]DaemonField, len(of))
	for i, f := range of {
		out[i] = DaemonField{f.Name, strings.ToValidUTF8(f.Text[:min(len(f.Text), maxFieldSee)], ""), f.Len}
	}
	return out
}

// decide takes a person's decision: POST {"intent_id","decision":{"kind","reason"?}}, as supervision.decide has it.
func (d *Daemon) decide(w http.ResponseWriter, r *http.Request) {
	var p rpcapi.SupervisionDecideParams
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askDaemon)
	defer cancel()
	if _, err := d.Client.Decide(ctx, p.IntentID, p.Decision); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
