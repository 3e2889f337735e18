package cassette

import (
	"context"
	"fmt"
	"time"
)

// ReplayOptions say how a cassette is played. Nil and zero work.
type ReplayOptions struct {
	Mode   ReplayMode    // "": what the manifest says
	Factor float64       // of ReplayScaled: recorded time times this; 0.25 is four times as fast. 0 is 1
	From   time.Duration // from the first event at this time or later
	Most   time.Duration // at most so long between two events; 0 is without a limit
	// Sleep waits for d, and returns the error of ctx where that ends first. Nil is the machine's.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now is a monotonic clock, so that what each takes is not waited for again. Nil is the machine's; with a Sleep of the
	// caller's and no Now, what Sleep was told is the time that went by.
	Now     func() time.Duration
	Streams []Stream // nil: all
}

// Replay calls each with every event in the order of seq, at the time that the mode says: the first one at once, and each other as long
// after it as it was recorded. An event's times are the recorded ones in every mode. It ends with the error of each, of reading, or of
// ctx.
func Replay(ctx context.Context, r *Reader, opts *ReplayOptions, each func(*Event) error) error {
	o := ReplayOptions{}
	if opts != nil {
		o = *opts
	}
	p, err := newPacer(&o, r.manifest.Timing.ReplayDefault)
	if err != nil {
		return err
	}
	var last time.Duration
	first := true
	for e, err := range r.Events(&EventsOptions{From: o.From, Streams: o.Streams}) {
		if err != nil {
			return err
		}
		if first {
			last, first = e.Time(), false
		}
		if err := p.until(ctx, max(e.Time()-last, 0)); err != nil {
			return err
		}
		last = max(e.Time(), last)
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// A pacer waits for what is due.
type pacer struct {
	o      *ReplayOptions
	factor float64
	start  time.Duration
	due    time.Duration // since start
}

func newPacer(o *ReplayOptions, standard ReplayMode) (*pacer, error) {
	orDefault(&o.Mode, standard)
	p := &pacer{o: o}
	switch o.Mode {
	case ReplayRealtime:
		p.factor = 1
	case ReplayScaled:
		orDefault(&o.Factor, 1)
		if !(o.Factor > 0) || o.Factor > 1e6 {
			return nil, fmt.Errorf("replay: scaled needs a factor above 0, found %v", o.Factor)
		}
		p.factor = o.Factor
	case ReplayCollapsed:
	default:
		return nil, fmt.Errorf("replay: expected %s, %s or %s, found %q", ReplayRealtime, ReplayScaled, ReplayCollapsed, o.Mode)
	}
	p.clock()
	p.start = o.Now()
	return p, nil
}

// clock fills in what tells and spends the time.
func (p *pacer) clock() {
	switch {
	case p.o.Sleep == nil:
		p.o.Sleep = sleep
	case p.o.Now == nil: // the caller's time goes by in its sleeper alone
		var slept time.Duration
		inner := p.o.Sleep
		p.o.Sleep = func(ctx context.Context, d time.Duration) error {
			slept += d
			return inner(ctx, d)
		}
		p.o.Now = func() time.Duration { return slept }
	}
	if p.o.Now == nil {
		start := time.Now()
		p.o.Now = func() time.Duration { return time.Since(start) }
	}
}

// until waits until d of recorded time has gone by since the event before.
func (p *pacer) until(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || p.factor == 0 {
		return err
	}
	if p.o.Most > 0 {
		d = min(d, p.o.Most)
	}
	p.due += time.Duration(float64(d) * p.factor)
	if wait := p.due - (p.o.Now() - p.start); wait > 0 {
		return p.o.Sleep(ctx, wait)
	}
	return nil
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
