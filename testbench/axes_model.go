package testbench

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// openModel says who answers calls of a model.
func (b *Bench) openModel() error {
	next, err := b.answers()
	if err != nil {
		return err
	}
	b.model = fixture.NewCaller(&fixture.CallerOptions{Source: &watchedSource{b: b, next: next}, Wait: b.wait})
	b.model.Record(b.Recorder())
	return nil
}

// answers returns who answers calls of a model; nil where they are denied.
func (b *Bench) answers() (fixture.Source, error) {
	c := &b.conf.LLM
	var next fixture.Source
	switch {
	case b.from != nil:
		return b.from.answers()
	case c.Source != nil:
		next = c.Source
	case c.Fixture != "":
		rules, err := readFile(c.Fixture, fixture.ReadRules)
		if err != nil {
			return nil, &ConfigError{"LLM.Fixture", err}
		}
		next = b.rules(rules)
	case c.Rules != nil:
		next = b.rules(c.Rules)
	case c.Live || c.Record != "":
		next = fixture.NewLive(&fixture.LiveOptions{Outside: b.clock.Outside})
	}
	if c.Record == "" {
		return next, nil
	}
	rec, err := fixture.NewRecording(next, c.Record, &fixture.RecordingOptions{Clean: b.secrets.clean})
	if err != nil {
		return nil, &ConfigError{"LLM.Record", err}
	}
	return rec, nil
}

// answers answers calls of a model from the tape.
func (r *recorded) answers() (fixture.Source, error) {
	calls, err := fixture.ReadCalls(r.all(), r.store)
	if err != nil {
		return nil, fmt.Errorf("testbench: the tape to replay: %s: %w", r.path, err)
	}
	if r.foreign {
		r.passTime(calls)
	}
	return fixture.NewTaped(calls, r.foreign), nil
}

// passTime gives the answers of another producer the time that its tape shows in virtual_time_ms alone: what passed since the record
// before.
func (r *recorded) passTime(calls []fixture.Call) {
	was := r.header.StartedAtUnixMS
	for _, rec := range r.records {
		if len(calls) > 0 && calls[0].Seq == rec.Seq {
			a := calls[0].Answer
			if calls = calls[1:]; was != nil && rec.VirtualTimeMS > *was && a.Delay() == 0 && a.Response != nil {
				a.Pieces = []fixture.Piece{{Text: a.Response.Text, DelayMS: rec.VirtualTimeMS - *was}}
			}
		}
		was = &rec.VirtualTimeMS
	}
}

func (b *Bench) rules(rules []fixture.Rule) fixture.Source {
	s := fixture.NewRules(rules)
	b.unused = append(b.unused, s.Unused)
	return s
}

// watchedSource tells the watch of calls that nothing answers.
type watchedSource struct {
	b    *Bench
	next fixture.Source // nil denies
	n    int            // calls denied
}

// Complete implements fixture.Source.
func (w *watchedSource) Complete(ctx context.Context, r *fixture.Request) (*fixture.Answer, error) {
	if err := w.b.watch.gate(); err != nil {
		return nil, err
	}
	var a *fixture.Answer
	var err error
	if w.next != nil {
		if r, err = w.b.asTaped(r); err != nil {
			return nil, err
		}
		a, err = w.next.Complete(ctx, r)
	} else {
		err = w.denied(r)
	}
	return a, w.b.watch.see(err, func() tape.Kind { return w.b.callOf(r) })
}

func (w *watchedSource) denied(r *fixture.Request) error {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.n++
	return &fixture.DeniedError{Call: w.n, LastUser: r.LastUser(), Digest: r.Digest()}
}

// asTaped returns a request as it stands on the tape that answers it: without secrets, which it may not be known by.
func (b *Bench) asTaped(r *fixture.Request) (*fixture.Request, error) {
	if b.from == nil {
		return r, nil
	}
	surface, err := r.Surface()
	if err != nil {
		return nil, err
	}
	if clean := b.secrets.clean(surface); !bytes.Equal(clean, surface) {
		return fixture.ParseSurface(clean, r.Model)
	}
	return r, nil
}

// callOf is what the tape would say of a call, without its answer.
func (b *Bench) callOf(r *fixture.Request) tape.Kind {
	k := &tape.LLMCall{Model: r.Model}
	k.RequestDigest = r.Digest()
	if surface, err := r.Surface(); err == nil {
		k.RequestPayload = b.payload(surface)
		if k.RequestPayload != nil {
			k.RequestDigest = k.RequestPayload.Hash
		}
	}
	return k
}
