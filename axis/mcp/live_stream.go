package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// GoOn implements exchange.Live: of a stream on which the client listens.
func (p *webExchange) GoOn(recorded exchange.Body, send exchange.Sender) exchange.Body {
	was := p.asked.Recorded.Exchange
	_, events := readerOf(was.Method, exchange.HeaderOf(was.ResponseHeaders)).(*eventReader)
	if p.conversation == nil || p.conversation.live == nil || !events || was.Method != http.MethodGet || was.Status != http.StatusOK {
		return nil
	}
	p.given.spliced = true
	live := p.conversation.live
	live.listens(1)
	return &splicedStream{p: p, live: live, wentOn: sync.OnceFunc(func() { live.listens(-1) }), send: send, recorded: recorded, buf: make([]byte, relayBuffer)}
}

// A splicedStream gives the recorded events of a stream, each when it is due, and past the tape what the server says.
type splicedStream struct {
	p        *webExchange
	live     *liveSession
	wentOn   func() // once it is the server's, or has ended
	send     exchange.Sender
	recorded exchange.Body
	reader   eventReader
	units    []*unit
	end      error         // of the recorded one
	far      io.ReadCloser // nil before that
	buf      []byte
}

// Next implements exchange.Body.
func (s *splicedStream) Next(ctx context.Context) ([]byte, error) {
	if s.far == nil {
		before, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(s.live.left, stop)()
		b, err := s.next(before)
		if err == nil || s.live.left.Err() == nil || ctx.Err() != nil {
			return b, err
		}
		if s.far, err = s.leave(ctx); err != nil {
			return nil, err
		}
	}
	n, err := s.far.Read(s.buf)
	return s.buf[:n], err
}

// next is the next recorded event, or the recorded end.
func (s *splicedStream) next(ctx context.Context) ([]byte, error) {
	for len(s.units) == 0 && s.end == nil {
		b, err := s.recorded.Next(ctx)
		if ctx.Err() == nil {
			s.end = err
		}
		_ = s.reader.take(b, s.end != nil, func(u *unit) error {
			s.units = append(s.units, newUnit(bytes.Clone(u.raw)))
			return nil
		})
		if err != nil && s.end == nil {
			return nil, err
		}
	}
	g := &s.p.given
	if len(s.units) == 0 {
		if err := g.atEnd(ctx, true); err != nil {
			return nil, err
		}
		s.wentOn()
		return nil, s.end
	}
	u := s.units[0]
	if _, _, err := Parse(u.data()); err == nil {
		if err := g.await(ctx); err != nil {
			return nil, err
		}
	}
	s.units = s.units[1:]
	return u.raw, nil
}

// leave goes on with what the server says itself.
func (s *splicedStream) leave(ctx context.Context) (io.ReadCloser, error) {
	if err := s.live.begin(ctx, s.send); err != nil {
		return nil, err
	}
	s.p.given.on = false
	if far := s.live.events; far != nil {
		s.wentOn()
		context.AfterFunc(ctx, func() { far.Close() })
		return far, nil
	}
	res, err := s.send(ctx, s.live.mapped(s.p.asked.Request, lastEvent))
	if s.wentOn(); err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK { // it has nothing to say unasked
		res.Body.Close()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return res.Body, nil
}

// Close implements exchange.Body.
func (s *splicedStream) Close() error {
	s.wentOn()
	err := s.recorded.Close()
	if s.far != nil {
		err = errors.Join(err, s.far.Close())
	}
	return err
}
