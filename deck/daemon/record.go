package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// Pauses between attempts to have an answer.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// errNoAnswer is why a daemon has not got something that is there and says nothing.
var errNoAnswer = errors.New("it did not answer in time")

// insist does something with the daemon until it has answered, or ctx ends: then the error says why it did not. A *Refusal is an answer.
func insist[T any](ctx context.Context, do func() (T, error)) (answer T, err error) {
	var last error
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if answer, err = do(); err == nil || refusalOf(err) != nil {
			return answer, err
		}
		if last == nil || ctx.Err() == nil { // the end of ctx tells nothing
			last = err
		}
		select {
		case <-ctx.Done():
			if errors.Is(last, context.DeadlineExceeded) || errors.Is(last, context.Canceled) {
				return answer, errNoAnswer
			}
			return answer, last
		case <-time.After(pause):
		}
	}
}

// A toldTurn is a call and the turn that it makes.
type toldTurn struct {
	call *toldCall
	json json.RawMessage
}

// Why a batch is not recorded: rpcapi.RunsRecordTurnsResult.Dropped.
const (
	DroppedTerminal = "run_terminal"
	droppedNotFound = "run_not_found"
	DroppedLimit    = "run_turn_limit"
)

// record records turns, once each: where an answer was lost, the daemon is asked what it has before it is given them again. What
// it refuses is lost, and counted; the error is that of a daemon that did not answer.
func (d *Run) record(ctx context.Context, batch []toldTurn) error {
	if d.full {
		return d.refused(batch, &Refusal{Err: errors.New(DroppedLimit)})
	}
	dropped, err := d.send(ctx, batch)
	switch {
	case err != nil:
		return err
	case dropped == "":
		return nil
	case dropped == DroppedTerminal || dropped == droppedNotFound:
		if err := d.goOn(ctx); err != nil {
			return d.refused(batch, err)
		}
		if dropped, err = d.send(ctx, batch); err != nil || dropped == "" {
			return err
		}
	}
	if len(batch) == 1 {
		d.full = dropped == DroppedLimit
		return d.refused(batch, &Refusal{Err: errors.New(dropped)})
	}
	for i := range batch { // it may be one of them alone
		if err := d.record(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// send sends a batch, and returns why the daemon did not record it; "" where it did.
func (d *Run) send(ctx context.Context, batch []toldTurn) (dropped string, err error) {
	res, err := insist(ctx, func() (_ *rpcapi.RunsRecordTurnsResult, err error) {
		if batch, err = d.landed(ctx, batch); err != nil || len(batch) == 0 {
			return nil, err
		}
		turns := make([]json.RawMessage, len(batch))
		for i := range batch {
			turns[i] = batch[i].json
		}
		d.flying = batch
		return d.sink.Record(ctx, d.run, turns)
	})
	switch no := refusalOf(err); {
	case no != nil:
		d.flying = nil
		return no.Error(), nil
	case err != nil || len(batch) == 0:
		return "", err
	}
	d.flying = nil
	if res.Dropped == "" {
		d.recorded(batch)
	}
	return res.Dropped, nil
}

// landed finds out what became of a batch whose answer was lost, and returns what of another is still to be sent. A batch is
// recorded whole or not at all.
func (d *Run) landed(ctx context.Context, batch []toldTurn) ([]toldTurn, error) {
	if len(d.flying) == 0 {
		return batch, nil
	}
	n, err := insist(ctx, func() (int, error) { return d.sink.Turns(ctx, d.run, d.acked) })
	if err != nil && refusalOf(err) == nil {
		return nil, err
	}
	switch was := d.flying; {
	case n >= len(was):
		d.recorded(was)
	case d.late: // it may be recorded yet: given again it might stand there twice
		_ = d.refused(was, errors.New("the daemon did not answer in time, so whether it has them is not known"))
	}
	d.flying = nil
	var left []toldTurn
	for _, t := range batch {
		if t.call.waits() {
			left = append(left, t)
		}
	}
	return left, nil
}

func (d *Run) recorded(batch []toldTurn) {
	d.acked += len(batch)
	d.Named.Turns += len(batch)
	for i := range batch {
		batch[i].call.told = cas.Sum(batch[i].json)
	}
}

// refused gives a batch up, for err. It returns err where the daemon did not answer: then the batch may be tried again.
func (d *Run) refused(batch []toldTurn, err error) error {
	if refusalOf(err) == nil && !d.late {
		return err
	}
	for i := range batch {
		batch[i].call.lost = true
		d.gaps.refuse(err.Error())
	}
	return nil
}

// maxContinued bounds how often a run goes on in another.
const maxContinued = 100

// goOn goes on in another run, for the daemon has ended this one: it was started again.
func (d *Run) goOn(ctx context.Context) error {
	if len(d.Named.Continued) == maxContinued {
		return &Refusal{Err: errors.New("the daemon ended the run again and again")}
	}
	start := d.start
	start.IdempotencyKey = fmt.Sprintf("%s-%d", d.Named.RunID, len(d.Named.Continued)+2)
	start.OutcomeDescription = "goes on from run " + d.run + ", which its daemon ended"
	res, err := insist(ctx, func() (*rpcapi.RunsStartResult, error) { return d.sink.Start(ctx, &start) })
	if err != nil {
		return err
	}
	d.Named.Continued = append(d.Named.Continued, res.RunID)
	d.run, d.acked, d.full = res.RunID, 0, false
	return nil
}
