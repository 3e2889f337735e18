package testbench

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A verdict is the comparison of a replay, up to the first call that the tape did not answer.
type verdict struct {
	mode               fidelity.Mode
	recorded, replayed []*tape.Record
	refused            error        // of that call; nil where all were answered
	asked              *tape.Record // what stands for it on the replay's side; nil where it is not known
	after              int          // how many recorded records are not compared
}

// cut leaves out what comes after a refused call.
func (v *verdict) cut(b *Bench) {
	b.watch.mu.Lock()
	err, asked, at := b.watch.err, b.watch.asked, b.watch.at
	wall, mono, phase := b.watch.wall, b.watch.mono, b.watch.phase
	b.watch.mu.Unlock()
	if b.from.bare {
		at = v.leaveOutLooks(at)
	}
	if err == nil {
		return
	}
	v.refused = err
	v.replayed = v.replayed[:min(at, len(v.replayed)):min(at, len(v.replayed))]
	if at < len(v.recorded) {
		v.after = len(v.recorded) - at - 1
		if v.mode != fidelity.Outcome { // which looks at the end alone
			v.recorded = v.recorded[: at+1 : at+1]
		}
	}
	if asked == nil || v.mode == fidelity.Outcome { // nothing came of it
		return
	}
	v.asked = &tape.Record{Seq: uint64(at), Phase: phase, VirtualTimeMS: wall, MonotonicMS: mono, Kind: asked}
	if at < len(b.from.records) {
		was := b.from.records[at]
		late := latencyOf(was.Kind)
		v.asked.VirtualTimeMS, v.asked.MonotonicMS, v.asked.G = wall+late, mono+late, was.G
		v.asked.Kind = inPlaceOf(was.Kind, asked)
		v.asked.Raw, v.asked.Extra = was.Raw, was.Extra
	}
	v.replayed = append(v.replayed, v.asked)
}

// alike are the two sides as they compare: a tape that lacks what ours say of a kind says nothing of it, whoever wrote it, and what
// another producer adds no replay of ours can have.
func (v *verdict) alike(from *recorded) (recorded, replayed fidelity.Records, err error) {
	keys, err := fidelity.KeysOf(each(from.records))
	if err != nil {
		return nil, nil, err
	}
	recorded, replayed = each(v.recorded), keys.Only(each(v.replayed))
	if !from.foreign {
		return recorded, replayed, nil
	}
	if keys, err = fidelity.KeysOf(each(v.replayed)); err != nil {
		return nil, nil, err
	}
	return keys.Only(recorded), replayed, nil
}

// tell adds to the report what the records do not show.
func (v *verdict) tell(r *fidelity.Report) {
	if v.refused == nil {
		return
	}
	cause := v.refused.Error()
	ref := fidelity.RequestRef{Cause: cause}
	told, shown := false, false
	if v.asked != nil {
		ref.Seq = &v.asked.Seq
		ref.Method, ref.URL = nameOf(v.asked.Kind)
		told, shown = explain(r, v.asked.Seq, cause)
	}
	r.Refused = append(r.Refused, ref)
	if !told && (v.mode != fidelity.Outcome || r.Faithful()) { // a call that nothing answers is never green
		r.Divergences = append(r.Divergences, fidelity.Divergence{
			Seq: ref.Seq, ReplaySeq: ref.Seq, Category: fidelity.MissingInRecorded, Message: "asked for and not on the tape", Cause: cause,
		})
		shown = len(r.Divergences) == 1
	}
	if !shown {
		r.Notes = append(r.Notes, "the call that the tape does not answer: "+cause)
	}
	if r.RecordedRecords += v.after; v.mode == fidelity.Outcome {
		r.RecordedRecords, r.Score = len(v.recorded), 0
	} else {
		r.Score = 1 - min(1, float64(r.Total())/float64(max(r.RecordedRecords, r.ReplayRecords, 1)))
	}
	if v.after > 0 && v.mode != fidelity.Outcome {
		r.Notes = append(r.Notes, fmt.Sprintf("not compared: the %s after the call that the tape does not answer", counted(v.after, "recorded record", "recorded records")))
	}
}

// explain gives the divergences of the refused call at seq its cause where they have none. told is whether there are any, shown whether
// a report in text says what was asked: it writes the cause of the first divergence, and of the others their changes alone.
func explain(r *fidelity.Report, seq uint64, cause string) (told, shown bool) {
	for i := range r.Divergences {
		d := &r.Divergences[i]
		if d.ReplaySeq == nil || *d.ReplaySeq != seq {
			continue
		}
		told = true
		shown = shown || i == 0 || len(d.Changes) > 0
		if d.Cause == "" {
			d.Cause = cause
		}
	}
	return told, shown
}

// nameOf says of a request what stands for its method and its URL in a report.
func nameOf(k tape.Kind) (method, url string) {
	if x := tape.ExchangeOf(k); x != nil && x.URL != "" {
		return x.Method, x.URL
	}
	if f := tape.FileOf(k); f != nil {
		return k.Name(), f.Path
	}
	switch k := k.(type) {
	case *tape.ProcessSpawn:
		return k.Name(), k.Program
	case *tape.MCPJSONRPC:
		return k.Method, k.Server
	case *tape.FileStat:
		return k.Name(), k.Path
	case *tape.DirList:
		return k.Name(), k.Path
	case *tape.EnvRead:
		return k.Name(), k.VarName
	}
	return k.Name(), ""
}

// latencyOf is how long the answer of a recorded call took, in ms.
func latencyOf(k tape.Kind) int64 {
	if call, ok := k.(*tape.LLMCall); ok {
		return latencyField(call.Extra)
	}
	return tape.TookMS(k)
}

// inPlaceOf returns the recorded call with its request replaced by what was asked, or what was asked where that is of another kind.
func inPlaceOf(recorded, asked tape.Kind) tape.Kind {
	switch a := asked.(type) {
	case *tape.LLMCall:
		return over(recorded, a, func(k, a *tape.LLMCall) {
			k.RequestDigest, k.RequestPayload, k.Model = a.RequestDigest, a.RequestPayload, a.Model
			if a.URL != "" {
				replaceRequest(&k.Exchange, &a.Exchange)
				k.Provider, k.Endpoint, k.ParamsDigest = a.Provider, a.Endpoint, a.ParamsDigest
			}
		})
	case *tape.HTTPExchange:
		return over(recorded, a, func(k, a *tape.HTTPExchange) { replaceRequest(&k.Exchange, &a.Exchange) })
	case *tape.ProcessSpawn:
		return over(recorded, a, func(k, a *tape.ProcessSpawn) {
			k.Program, k.Args, k.Cwd, k.Stdin = a.Program, slices.Clone(a.Args), a.Cwd, a.Stdin
		})
	case *tape.MCPJSONRPC:
		return over(recorded, a, func(k, a *tape.MCPJSONRPC) {
			k.Server, k.Method, k.Request, k.RequestDigest, k.ParamsDigest = a.Server, a.Method, a.Request, a.RequestDigest, a.ParamsDigest
		})
	case *tape.FileRead:
		return over(recorded, a, func(k, a *tape.FileRead) { k.Path = a.Path })
	case *tape.FileDelete:
		return over(recorded, a, func(k, a *tape.FileDelete) { k.Path = a.Path })
	case *tape.FileStat:
		return over(recorded, a, func(k, a *tape.FileStat) { k.Path = a.Path })
	case *tape.DirList:
		return over(recorded, a, func(k, a *tape.DirList) { k.Path = a.Path })
	case *tape.EnvRead:
		return over(recorded, a, func(k, a *tape.EnvRead) { k.VarName = a.VarName })
	case *tape.RandomRead:
		return over(recorded, a, func(k, a *tape.RandomRead) { k.Length = a.Length })
	case *tape.ClockRead:
		return over(recorded, a, func(k, a *tape.ClockRead) { k.Source = a.Source })
	}
	return asked
}

// over returns a copy of the recorded call into which put has put what was asked; of a call of another kind what was asked itself.
func over[T any, K interface {
	*T
	tape.Kind
}](recorded tape.Kind, asked K, put func(k, asked K)) tape.Kind {
	was, ok := recorded.(K)
	if !ok {
		return asked
	}
	k := *was
	put(&k, asked)
	return K(&k)
}

// replaceRequest replaces the request of an exchange.
func replaceRequest(x, asked *tape.Exchange) {
	x.Method, x.URL, x.RequestHeaders = asked.Method, asked.URL, asked.RequestHeaders
	x.RequestDigest, x.RequestPayload = asked.RequestDigest, asked.RequestPayload
}

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

// leaveOutLooks takes out of the replay that a path was looked at, where the tape never says so. at is a place among the records; it
// returns where that is then.
func (v *verdict) leaveOutLooks(at int) int {
	look := func(rec *tape.Record) bool {
		_, ok := rec.Kind.(*tape.FileStat)
		return ok
	}
	if slices.ContainsFunc(v.recorded, look) {
		return at
	}
	at = min(at, len(v.replayed))
	before := slices.DeleteFunc(slices.Clone(v.replayed[:at]), look)
	after := slices.DeleteFunc(slices.Clone(v.replayed[at:]), look)
	v.replayed = slices.Concat(before, after)
	return len(before)
}
