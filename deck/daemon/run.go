package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Run tells a run to a daemon while it is recorded. A nil one does nothing: its methods return at once. One goroutine at a
// time uses it: its own from begin to stop, the recorder's before and after.
type Run struct {
	sink   Sink
	scrub  *scrub.Scrubber
	start  rpcapi.RunsStartParams
	Named  recording.DaemonRun
	run    string     // the one that takes turns now
	acked  int        // turns of it that the daemon has
	flying []toldTurn // whose answer was lost
	full   bool       // it takes no more
	late   bool       // the patience has ended once: what flies may be recorded yet

	tape   *Tape
	book   *callBook
	gaps   gapList
	Left   time.Duration // of the patience
	closed bool          // the run was completed, or given up

	end    chan struct{}      // closed when the program has ended
	done   chan struct{}      // closed when the goroutine has ended
	cancel context.CancelFunc // ends its waiting
}

// text is s as it may be told.
func (d *Run) text(s string) string {
	b, _ := d.scrub.Bytes([]byte(s))
	return string(b)
}

func (d *Run) open(ctx context.Context, id string) error {
	d.start.IdempotencyKey = id
	res, err := d.sink.Start(ctx, &d.start)
	if err != nil {
		return err
	}
	d.start.AgentID = res.AgentID
	d.Named.AgentID, d.Named.RunID, d.run = res.AgentID, res.RunID, res.RunID
	return nil
}

// A Tape is the tape that is told while it is written.
type Tape struct {
	Path  string
	Store *cas.Dir
	Rec   *tape.Recorder
	Log   *slog.Logger
}

// Begin starts to tell what gets on t.
func (d *Run) Begin(t *Tape) {
	if d == nil {
		return
	}
	var ctx context.Context
	ctx, d.cancel = context.WithCancel(context.Background())
	d.tape, d.end, d.done = t, make(chan struct{}), make(chan struct{})
	lanes := derive.NewSurvey()
	lanes.Store = t.Store
	l := &derive.Live{
		Src: &derive.Source{Path: t.Path, ID: d.Named.RunID, Open: true}, Lanes: lanes,
		Heard: func(e sessionlog.Event) error { return d.heard(ctx, e) },
		Idle:  func() error { return d.flush(ctx) },
	}
	go func() {
		defer close(d.done)
		err := l.Follow(d.end)
		if err == nil {
			err = d.flush(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.tape.Log.Debug("the run is told to its daemon at its end only", "err", err)
		}
	}()
}

// Stop has everything told that is on the tape, as far as the patience goes, and ends the goroutine. The tape may be closed then.
func (d *Run) Stop() {
	if d == nil || d.end == nil {
		return
	}
	_ = d.tape.Rec.Flush() // who closes the tape sees its error
	ctx, done := d.within()
	defer done()
	defer context.AfterFunc(ctx, d.cancel)()
	close(d.end)
	<-d.done
	d.end = nil
	d.cancel()
}

// within returns a context that ends when the patience does, which what passes until done counts against.
func (d *Run) within() (ctx context.Context, done func()) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), max(d.Left, time.Second/4)) // one that answers at once is heard
	return ctx, func() {
		d.late = d.late || ctx.Err() != nil
		cancel()
		d.Left -= time.Since(begun)
	}
}

// maxWaiting bounds the results that wait to be told, in bytes, before they are: what is told at once, in the common case.
const maxWaiting = 1 << 20

func (d *Run) heard(ctx context.Context, e sessionlog.Event) error {
	if err := d.book.hear(e); err != nil || d.book.bytes < maxWaiting {
		return err
	}
	return d.flush(ctx)
}

// flush asks for verdicts on what was called, and tells what has its result. It waits for a daemon that is gone until ctx ends.
func (d *Run) flush(ctx context.Context) error {
	if err := d.judge(ctx); err != nil {
		return err
	}
	if d.book.bytes == 0 && len(d.book.open) == 0 {
		return nil
	}
	return d.tell(ctx, d.book.ready())
}

// tell tells calls, a batch at a time.
func (d *Run) tell(ctx context.Context, calls []*toldCall) error {
	defer d.book.tidy()
	for len(calls) > 0 {
		var batch []toldTurn
		size := 0
		for len(batch) < min(len(calls), runtrace.MaxBatch) && size < maxWaiting {
			c := calls[len(batch)]
			turn, err := turnOf(&c.call, c.result, d.scrub.Bytes)
			if err != nil { // which what was read from JSON never is
				return err
			}
			batch, size = append(batch, toldTurn{c, turn}), size+len(turn)
		}
		if err := d.record(ctx, batch); err != nil {
			return err
		}
		calls = calls[len(batch):]
	}
	return nil
}

// Settle tells what is left, now that again has given the whole tape once more, and returns what the daemon does not have, or has
// otherwise.
func (d *Run) Settle() []string {
	if d == nil {
		return nil
	}
	ctx, done := d.within()
	defer done()
	err := d.tell(ctx, d.standing(d.book.ready()))
	if err == nil {
		err = d.tell(ctx, d.standing(d.book.open)) // without a result
	}
	return d.gaps.list(d, err)
}

// standing returns those of calls that the whole tape has.
func (d *Run) standing(calls []*toldCall) (out []*toldCall) {
	for _, c := range calls {
		if c.stands {
			out = append(out, c)
		}
	}
	return out
}

// Again returns what is to hear the events of the whole tape, at the end; nil for nobody.
func (d *Run) Again() func(sessionlog.Event) error {
	if d == nil {
		return nil
	}
	d.book.again = func(c *toldCall) error {
		turn, err := turnOf(&c.call, c.result, d.scrub.Bytes)
		if err == nil && !c.told.IsZero() && c.told != cas.Sum(turn) {
			d.gaps.changed++
		}
		return nil
	}
	gone := false
	return func(e sessionlog.Event) error {
		if err := d.book.hear(e); err != nil || d.book.bytes < maxWaiting || gone {
			return err
		}
		ctx, done := d.within()
		defer done()
		gone = d.tell(ctx, d.standing(d.book.ready())) != nil // settle says so
		return nil
	}
}

// Complete ends the run, and the connection. The error says that the daemon did not learn of the end.
func (d *Run) Complete(end *End) error {
	if d == nil || d.closed {
		return nil
	}
	d.Stop()
	d.closed = true
	defer d.sink.Close()
	ctx, done := d.within()
	defer done()
	lost, outcome := false, d.outcome(end)
	_, err := insist(ctx, func() (struct{}, error) {
		err := d.sink.Complete(ctx, &rpcapi.RunsCompleteParams{RunID: d.run, Outcome: *outcome})
		if lost && refusalOf(err) != nil {
			err = nil // the first was done, and its answer lost
		}
		lost = err != nil
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("the daemon did not learn how the run ended, and ends it as incomplete: %w", err)
	}
	return nil
}

// maxJudged bounds the parameters that a verdict is asked for, in bytes: a frame of the protocol has a bound.
const maxJudged = 8 << 20

// judge asks the daemon's policies about what was called, and puts their verdicts onto the tape.
func (d *Run) judge(ctx context.Context) error {
	for len(d.book.fresh) > 0 {
		if err := d.judgeOne(ctx, &d.book.fresh[0].call); err != nil {
			return err
		}
		d.book.fresh[0] = nil
		d.book.fresh = d.book.fresh[1:]
	}
	return nil
}

// judgeOne asks about one call. The error is that of a daemon that does not answer.
func (d *Run) judgeOne(ctx context.Context, c *sessionlog.ToolCall) error {
	if d.gaps.unjudgeable != "" {
		d.gaps.unjudged++
		return nil
	}
	params, _ := d.scrub.Bytes(c.Arguments)
	if params = account.Canonical(params); len(bytes.TrimSpace(params)) == 0 {
		params = []byte("{}")
	}
	if len(params) > maxJudged {
		d.gaps.unjudge("its parameters are too long")
		return nil
	}
	p := &rpcapi.PolicyCheckParams{Tool: d.text(c.Name), ActionID: d.text(c.ID), Parameters: params, RunID: d.run}
	said, err := insist(ctx, func() (json.RawMessage, error) { return d.sink.Check(ctx, p) })
	if no := refusalOf(err); no != nil {
		d.gaps.unjudge(no.Error())
		if no.Unknown {
			d.gaps.unjudgeable = no.Error()
		}
		return nil
	}
	if err != nil {
		return err
	}
	d.verdict(p, said)
	return nil
}

// verdict puts what the policies said onto the tape.
func (d *Run) verdict(p *rpcapi.PolicyCheckParams, said json.RawMessage) {
	said, _ = d.scrub.Bytes(said)
	var v struct {
		PolicySet string          `json:"policy_set"`
		Verdict   json.RawMessage `json:"verdict"`
	}
	if err := json.Unmarshal(said, &v); err != nil || v.Verdict == nil {
		d.gaps.unjudge("the daemon's answer is none")
		return
	}
	params, err := d.tape.Rec.Payload(p.Parameters)
	if err != nil {
		return // which has ended the recording
	}
	set, _ := tape.SafeString(v.PolicySet)
	action, _ := tape.SafeString(p.ActionID)
	tool, _ := tape.SafeString(p.Tool)
	_ = d.tape.Rec.Record(&tape.PolicyVerdict{ // which tells the run of its failure
		PolicySet: set, ActionID: action, Tool: tool, ParamsDigest: cas.Sum(p.Parameters), ParamsPayload: params, Verdict: v.Verdict,
	})
}
