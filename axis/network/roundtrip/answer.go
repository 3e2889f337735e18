package roundtrip

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// patience is how long at least, on the run's clock, an answer that its program ended while recording waits for it to do so again.
const patience = 10 * time.Second

// answer gives the recorded answer.
func (t *Transport) answer(req *http.Request, o *exchange.Open, rec *exchange.Recorded) (*http.Response, error) {
	a, ex := &taped{t: t, rec: rec}, rec.Exchange
	opts := &exchange.AnswerOptions{Speed: t.opts.Speed, Patience: rec.Patience(patience), Damage: a.damaged}
	if t.opts.Machine {
		opts.Of = rec
		if err := o.End(""); err != nil {
			return nil, err
		}
	} else {
		opts.Clock = &exchange.Clock{NowMS: t.opts.NowMS, Wait: t.opts.Wait}
	}
	if ex.Status < http.StatusOK {
		cut, err := a.over(req.Context(), nil, exchange.CutAgain(req.Context(), ex.Error, opts))
		return nil, both(err, a.recorded(o, cut))
	}
	var err error
	if a.from, err = exchange.OpenAnswer(t.opts.Tape.Store, ex, opts); err != nil {
		return nil, a.damaged(err)
	}
	if t.opts.Machine {
		if err := a.from.Begin(req.Context()); err != nil {
			return nil, both(err, a.from.Close())
		}
	}
	res := rec.Response(req, a.from.Size())
	if a.from.Size() == 0 && ex.Error == "" && res.Trailer == nil {
		res.Body = http.NoBody
		return res, a.end(o, "")
	}
	ctx, cancel := context.WithCancel(req.Context())
	res.Body = t.begin(&body{o: o, ctx: ctx, cancel: cancel, from: a, res: res})
	return res, nil
}

// taped is the body of a recorded answer.
type taped struct {
	t    *Transport
	rec  *exchange.Recorded
	from *exchange.AnswerBody
}

// next implements source.
func (a *taped) next(ctx context.Context) ([]byte, error) { return a.from.Next(ctx) }

// over implements source.
func (a *taped) over(_ context.Context, res *http.Response, err error) (text string, out error) {
	if cut, ok := errors.AsType[*exchange.CutError](err); ok {
		return cut.Text, exchange.ErrorAgain(cut.Text)
	}
	if errors.Is(err, io.EOF) {
		a.rec.GiveTrailers(res)
	}
	return a.rec.Exchange.Error, err
}

// end implements source.
func (a *taped) end(o *exchange.Open, text string) error {
	return both(a.recorded(o, text), a.from.Close())
}

// recorded records the exchange, unless its request was recorded before.
func (a *taped) recorded(o *exchange.Open, text string) error {
	if a.t.opts.Machine {
		return nil
	}
	return o.EndRecorded(text, a.t.opts.Timed)
}

// damaged notes that the answer cannot be given whole.
func (a *taped) damaged(err error) error { return a.t.book.Damage(a.rec, err) }
