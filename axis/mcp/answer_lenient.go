package mcp

import (
	"bytes"
	"context"
	"errors"
)

// serveLenient answers one client over lines.
func (s *Served) serveLenient(ctx context.Context, o *ServeOptions) error {
	gone, clientGone := context.WithCancel(ctx)
	v := newVisit(gone, s, o)
	defer v.end()
	defer clientGone()
	box := newOutbox(ctx, 0)
	v.unasked = func(b []byte) error {
		box.put(outgoing{bytes: b})
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
		box.end()
	}()
	err := box.run(func(g *outgoing) error {
		if _, err := o.Out.Write(append(g.bytes, '\n')); err != nil {
			return errClientGone
		}
		return nil
	})
	if errors.Is(err, errClientGone) || ctx.Err() != nil {
		return nil
	}
	return err
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
