package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// Records are those of a run's file from a cursor on (0 is the first record), as they are now. The iterator gives one error at
// most, as its last pair: ErrNotFound where there is no such run for this client.
func (c *Client) Records(ctx context.Context, runID string, cursor int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		t := &trace{c: c, run: runID, next: cursor, yield: yield}
		l, err := c.linked(ctx)
		if err == nil {
			err = t.fetch(ctx, l)
		}
		if err != nil && !t.over {
			yield(Record{}, err)
		}
	}
}

// Subscribe follows a run from a cursor on: the records that there are, then those that come, to the last. Every record comes
// once and in order, whatever was lost in between: what a slow reader missed, and what happened while the connection was lost,
// is read again. The iterator ends after the record ended, or with one error as its last pair: ErrNotFound where there is no such run
// for this client, the error of the context, or that of a connection that did not come back within Options.Patience.
func (c *Client) Subscribe(ctx context.Context, runID string, cursor int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		t := &trace{c: c, run: runID, next: cursor, yield: yield}
		for !t.over {
			l, err := c.linked(ctx)
			if err == nil {
				err = t.follow(ctx, l)
			}
			again := errors.Is(err, ErrLost) && c.o.Patience >= 0
			if err != nil && !again && !t.over {
				yield(Record{}, err)
				return
			}
		}
	}
}

// trace gives the records of one run to its reader, in order.
type trace struct {
	c     *Client
	run   string
	next  int // the cursor of the next record
	yield func(Record, error) bool
	over  bool // the reader has had the last record, or wants no more
}

// follow gives what comes over one connection.
func (t *trace) follow(ctx context.Context, l *link) error {
	w, end, refused := l.subscribe(ctx, t.run)
	if refused == nil {
		defer end()
	} else if !errors.As(refused, new(*Error)) {
		return refused
	}
	if err := t.fetch(ctx, l); err != nil { // says ErrNotFound where the daemon refused for that
		return err
	}
	if refused != nil {
		return refused
	}
	for !t.over {
		record, lost, err := w.wait(ctx)
		if err != nil {
			return err
		}
		if lost || !t.event(record) {
			if err := t.fetch(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// event gives a turn that was announced; false where the trace must be read instead: it does not follow on what was read, or
// it is the last record, and whether turns are missing before that one it does not say.
func (t *trace) event(record json.RawMessage) bool {
	kind, index := tag(record)
	if kind != kindTurn {
		return false
	}
	at := index + 1 // the record started is the first
	if at == t.next {
		t.give(kind, record)
	}
	return at < t.next
}

// fetch gives everything that is in the trace from the cursor on.
func (t *trace) fetch(ctx context.Context, l *link) error {
	for !t.over {
		var res rpcapi.RunsGetTraceResult
		if err := l.call(ctx, rpcapi.RunsGetTrace, rpcapi.RunsGetTraceParams{RunID: t.run, Cursor: t.next}, &res); err != nil {
			return err
		}
		if res.NotFound {
			return fmt.Errorf("run %s: %w", t.run, ErrNotFound)
		}
		if len(res.Records) == 0 {
			return nil
		}
		for _, record := range res.Records {
			if kind, _ := tag(record); !t.over {
				t.give(kind, record)
			}
		}
	}
	return nil
}

func (t *trace) give(kind string, record json.RawMessage) {
	t.next++
	t.over = !t.yield(Record{Cursor: t.next, Kind: kind, JSON: record}, nil) || kind == kindEnded
}

const (
	kindTurn  = "turn"
	kindEnded = "ended"
)

func tag(record json.RawMessage) (kind string, index int) {
	var t struct {
		Record string `json:"record"`
		Index  int    `json:"index"`
	}
	if json.Unmarshal(record, &t) != nil {
		return "", 0
	}
	return t.Record, t.Index
}

// maxWaiting bounds what is kept of a run for a reader that is slow, in records and bytes: what comes beyond it is dropped and
// read again from the trace.
const (
	maxWaiting      = 1024
	maxWaitingBytes = 4 << 20
)

// watch is where the events of a run wait for one subscription on one connection.
type watch struct {
	over <-chan struct{} // of the connection

	mu      sync.Mutex
	waiting []json.RawMessage
	bytes   int
	lost    bool          // something is missing after waiting
	some    chan struct{} // holds one token while there may be something
}

// put takes an event; it never waits.
func (w *watch) put(record json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost || len(w.waiting) >= maxWaiting || w.bytes+len(record) > maxWaitingBytes {
		w.lost = true
	} else {
		w.waiting, w.bytes = append(w.waiting, record), w.bytes+len(record)
	}
	w.wake()
}

// lose notes that events are missing from here on: the daemon said so.
func (w *watch) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
	w.wake()
}

func (w *watch) wake() {
	select {
	case w.some <- struct{}{}:
	default:
	}
}

// wait gives the next record, or tells that records were lost: everything that was kept was given by then.
func (w *watch) wait(ctx context.Context) (record json.RawMessage, lost bool, err error) {
	for {
		if record, lost, ok := w.take(); ok {
			return record, lost, nil
		}
		select {
		case <-w.some:
		case <-w.over:
			return nil, false, ErrLost
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

func (w *watch) take() (record json.RawMessage, lost, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 {
		record, w.waiting[0] = w.waiting[0], nil
		w.waiting, w.bytes = w.waiting[1:], w.bytes-len(record)
		return record, false, true
	}
	lost, w.lost = w.lost, false
	return nil, lost, lost
}

// Pending lists what waits for a person's decision, oldest first. It wants Options.Host.
func (c *Client) Pending(ctx context.Context) ([]rpcapi.Intent, error) {
	var res rpcapi.SupervisionPendingResult
	err := c.Call(ctx, rpcapi.SupervisionPending, nil, &res)
	return res.Intents, err
}

// Decide decides one intent. decided is false where it waits on, for it was escalated. InvalidParams: it was decided, or its time is over.
func (c *Client) Decide(ctx context.Context, intent string, d rpcapi.Decision) (decided bool, err error) {
	var res rpcapi.SupervisionDecideResult
	err = c.Call(ctx, rpcapi.SupervisionDecide, rpcapi.SupervisionDecideParams{IntentID: intent, Decision: d}, &res)
	return res.Decided, err
}

// Supervise has proposals that match a filter wait for decisions from when it returns until its iterator ends, and gives what waits: first what
// does already, then what comes, each again when it is escalated, and all of it again after a connection was lost. What was given may have been
// decided by another meanwhile. One of a client at a time. The iterator gives one error at most, as its last pair.
func (c *Client) Supervise(ctx context.Context, filter *rpcapi.SupervisionFilter) (iter.Seq2[rpcapi.Intent, error], error) {
	l, waiting, err := c.supervise(ctx, filter)
	if err != nil {
		return nil, err
	}
	return func(yield func(rpcapi.Intent, error) bool) {
		for err == nil {
			err = l.supervise(ctx, waiting, func(in rpcapi.Intent) bool { return yield(in, nil) })
			switch {
			case err == nil:
				return
			case errors.Is(err, ErrLost) && c.o.Patience >= 0:
				l, waiting, err = c.supervise(ctx, filter)
			}
		}
		yield(rpcapi.Intent{}, err)
	}, nil
}

// supervise subscribes on the connection of now.
func (c *Client) supervise(ctx context.Context, filter *rpcapi.SupervisionFilter) (*link, []rpcapi.Intent, error) {
	l, err := c.linked(ctx)
	if err != nil {
		return nil, nil, err
	}
	var res rpcapi.SupervisionSubscribeResult
	err = l.call(ctx, rpcapi.SupervisionSubscribe, rpcapi.SupervisionSubscribeParams{Filter: filter}, &res)
	return l, res.Intents, err
}

// intents are those that a connection was told of and that nobody has taken yet. Those that a daemon has waiting are bounded.
type intents struct {
	mu   sync.Mutex
	list []rpcapi.Intent
	some chan struct{} // holds one while there may be any
}

func (i *intents) put(in ...rpcapi.Intent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.list = append(i.list, in...)
	i.list = i.list[max(0, len(i.list)-maxWaiting):] // what a reader is too slow for was denied long ago
	select {
	case i.some <- struct{}{}:
	default:
	}
}

func (i *intents) take() []rpcapi.Intent {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := i.list
	i.list = nil
	return list
}

// supervise gives what waits over one connection, until give wants no more, and then lets go.
func (l *link) supervise(ctx context.Context, waiting []rpcapi.Intent, give func(rpcapi.Intent) bool) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTimeout)
		defer cancel()
		_ = l.call(ctx, rpcapi.SupervisionUnsubscribe, nil, nil) // lost: then it is unsubscribed
	}()
	for {
		for _, in := range waiting {
			if !give(in) {
				return nil
			}
		}
		select {
		case <-l.intents.some:
			waiting = l.intents.take()
		case <-l.over:
			return ErrLost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
