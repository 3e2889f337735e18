package testbench

import (
	"errors"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A watch sees the calls that nothing answers: they fail their caller, who may go on without a word, and the run as well.
type watch struct {
	replay bool        // after the first one every call fails
	told   func(error) // is told of each; nil is nobody
	now    func() (records int, wallMS, monotonicMS int64, phase tape.Phase)

	mu    sync.Mutex
	lost  error     // of the first answer of the tape that could not be looked at
	err   error     // of the first one
	asked tape.Kind // by it: the record that it would have, without an answer; nil where that is not known
	at    int       // how many records stood before it
	wall  int64     // when, by the run's clock
	mono  int64
	phase tape.Phase
}

// first returns the error of the first call that nothing answered.
func (w *watch) first() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// gate is asked before every call. On a replay a call that nothing answered ends the comparison: what comes after it could be
// anything, and fails as it did.
func (w *watch) gate() error {
	if !w.replay {
		return nil
	}
	return w.first()
}

// see takes note of err where it says that nothing answers a call, and returns it. asked may be nil.
func (w *watch) see(err error, asked func() tape.Kind) error {
	switch {
	case err == nil:
	case lostBlob(err) && w.replay:
		w.lose(err)
	case unanswered(err):
		w.refuse(err, asked)
	}
	return err
}

// lose takes note of an answer of a replayed tape that cannot be looked at, its blob above all: nothing is compared then.
func (w *watch) lose(err error) {
	if !w.replay {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == nil {
		w.lost = err
	}
	if w.err == nil {
		w.err = err
	}
}

// unread returns the error of the first answer of the tape that could not be looked at.
func (w *watch) unread() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// refuse takes note of a call that nothing answers.
func (w *watch) refuse(err error, asked func() tape.Kind) {
	w.mu.Lock()
	first := w.err == nil
	if first {
		w.err = err
	}
	w.mu.Unlock()
	if first {
		w.remember(asked)
	}
	if w.told != nil {
		w.told(err)
	}
}

// remember keeps what the first call asked, and where.
func (w *watch) remember(asked func() tape.Kind) {
	var k tape.Kind
	if asked != nil {
		k = asked()
	}
	at, wall, mono, phase := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.at, w.wall, w.mono, w.phase = k, at, wall, mono, phase
}

// unanswered reports whether err says that nothing answers a call: that its axis is denied, or that what answers has no answer to
// it. That a file is absent, a program failed or a model refused are answers.
func unanswered(err error) bool {
	var (
		noModel  *fixture.DeniedError
		noRule   *fixture.NoRuleError
		noCall   *fixture.UnmatchedError
		denied   *process.DeniedError
		mismatch *process.MismatchError
		used     *process.ExhaustedError
		notTaped *process.NotTapedError
		noNet    *roundtrip.DeniedError
		noPage   *roundtrip.UnmatchedError
		damaged  *exchange.DamagedError
		refused  *RefusedError
	)
	for _, target := range []any{&noModel, &noRule, &noCall, &denied, &mismatch, &used, &notTaped, &noNet, &noPage, &damaged, &refused} {
		if errors.As(err, target) {
			return true
		}
	}
	return false
}

// A RefusedError is a call that the tape of a replay does not answer, or that an axis which is denied does not, and that has no
// error of its own room: a reading of the environment, of random numbers, of a real clock, a call of a tool.
type RefusedError struct {
	Axis    string // "environment", "random", "clock", "mcp"
	Asked   string // what was asked for, for people
	Nearest string // what the tape has that is nearest, for people; "" for nothing
	Next    string // what to do
}

// Error implements error.
func (e *RefusedError) Error() string {
	text := e.Axis + ": " + e.Asked
	if e.Nearest != "" {
		text += "; " + e.Nearest
	}
	return text + "; " + e.Next
}
