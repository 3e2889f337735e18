package mcp

import (
	"bytes"
	"context"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// serveLenient answers one client over lines.
func (s *Served) serveLenient(ctx context.Context, o *ServeOptions) error {
	gone, clientGone := context.WithCancel(ctx)
	v := newVisit(gone, s, o)
	defer v.end()
	defer clientGone()
	box := lane.NewPlayer(nil, &lane.PlayerOptions[bookKey, []byte]{})
	v.unasked = func(b []byte) error {
		box.Say(b)
		return nil
	}
	go func() {
		_ = readLines(o.In, func(line []byte) error {
			if msgs, batch, err := Parse(bytes.Clone(line)); err == nil { // else it is passed by
				v.messages(ctx, msgs, batch, v.unasked)
			}
			return nil
		})
		clientGone()
		v.rest()
		box.Ended()
	}()
	for {
		said, err := box.Next(ctx)
		if err == nil {
			_, err = o.Out.Write(append(said.Value, '\n'))
		}
		if err != nil { // the client has gone, or the context is done
			return nil
		}
	}
}

// messages takes what a client said in one go. A request is answered before it returns, unless its answer waits for somebody.
func (v *visit) messages(ctx context.Context, msgs []Message, batch bool, out outlet) {
	if batch {
		v.work(func() { v.batch(ctx, msgs, out) })
		return
	}
	for i := range msgs {
		m := &msgs[i]
		switch {
		case !m.IsRequest():
			v.tell(m)
		case v.silent(m):
			_ = v.answer(ctx, m, out) // out never fails
		default:
			v.work(func() { _ = v.answer(ctx, m, out) })
		}
	}
}

// batch answers a batch by one.
func (v *visit) batch(ctx context.Context, msgs []Message, out outlet) {
	var answers [][]byte
	for i := range msgs {
		if m := &msgs[i]; !m.IsRequest() {
			v.tell(m)
			continue
		}
		_ = v.answer(ctx, &msgs[i], func(b []byte) error {
			if answersTo(b, msgs[i].ID) {
				answers = append(answers, b)
				return nil
			}
			return out(b)
		})
	}
	if b := lineOf(answers, true); b != nil {
		_ = out(bytes.TrimSuffix(b, []byte("\n")))
	}
}

// answersTo reports whether b is the answer to the request of that id.
func answersTo(b, id []byte) bool {
	msgs, _, err := Parse(b)
	return err == nil && len(msgs) == 1 && msgs[0].IsAnswer() && idName(msgs[0].ID) == idName(id)
}
