package roundtrip

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// patience is how long at least, on the run's clock, an answer that its program ended while recording waits for it to do so again.
const patience = 10 * time.Second

// answer gives the recorded answer.
func (t *Transport) answer(req *http.Request, o *exchange.Open, rec *exchange.Recorded) (*http.Response, error) {
	a := &taped{t: t, rec: rec, startMS: t.opts.NowMS()}
	opts, ex := &exchange.AnswerOptions{AtOnce: true, Damage: a.damaged}, rec.Exchange
	if t.opts.Machine {
		opts = &exchange.AnswerOptions{Speed: t.opts.Speed, Patience: rec.Patience(patience), Of: rec, Damage: a.damaged}
		if err := o.End(""); err != nil {
			return nil, err
		}
	}
	if ex.Status < http.StatusOK {
		err := error(&exchange.CutError{Text: ex.Error})
		if t.opts.Machine {
			err = exchange.CutAgain(req.Context(), ex.Error, opts)
		}
		cut, err := a.over(req.Context(), nil, err)
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
	t       *Transport
	rec     *exchange.Recorded
	from    *exchange.AnswerBody
	startMS int64
}

// next implements source.
func (a *taped) next(ctx context.Context) ([]byte, error) {
	if err := a.wait(ctx); err != nil {
		return nil, err
	}
	return a.from.Next(ctx)
}

// wait waits until the next chunk is as late as it was.
func (a *taped) wait(ctx context.Context) error {
	chunks, n := a.rec.Exchange.Stream, a.from.Begun()
	if !a.t.opts.Timed || a.t.opts.Wait == nil || a.from.Within() || n >= len(chunks) {
		return nil
	}
	due := a.startMS + chunks[n].TMS - a.t.opts.NowMS()
	if due <= 0 {
		return nil
	}
	return a.t.opts.Wait(ctx, time.Duration(due)*time.Millisecond)
}

// cut is how an answer that was cut ends now: as it did, but where the program has to end it. Err is what the program gets.
func (a *taped) cut(ctx context.Context) (text string, err error) {
	recorded := a.rec.Exchange.Error
	if wait := a.t.opts.Wait; wait != nil && (recorded == tape.Cancelled || recorded == exchange.DeadlinePassed) {
		if err := wait(ctx, a.rec.Patience(patience)); err != nil {
			return recorded, err
		}
	}
	if recorded == tape.Cancelled {
		recorded = tape.HeldOn
	}
	return recorded, exchange.ErrorAgain(recorded)
}

// over implements source.
func (a *taped) over(ctx context.Context, res *http.Response, err error) (text string, out error) {
	var cut *exchange.CutError
	switch {
	case errors.As(err, &cut) && a.t.opts.Machine: // it has waited
		return cut.Text, exchange.ErrorAgain(cut.Text)
	case cut != nil:
		return a.cut(ctx)
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
