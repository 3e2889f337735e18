package client

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

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
