// Package daemon tells a run to a tapedeck daemon while it is recorded: each tool call of its main conversation becomes a turn
// there. The tape is its queue, so that a daemon that is slow, gone or restarting holds nobody up and costs no memory.
//
// Goals: every turn once, in the order of the calls; what the daemon does not have is said. Not goals: holding a call back for a
// verdict.
package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// A run that is recorded may be told to a daemon while it goes on: each tool call of its main conversation becomes a turn of a
// run there.
//
// What is told is read from the tape, as session.jsonl is derived from it (derive.Live), by one goroutine of its own: the tape is
// its queue, so that a daemon that is slow, gone or restarting holds nobody up and costs no memory, and nothing is told that does
// not stand on the tape. A call is told with its result, which the next request of the conversation brings, in the order of the
// calls. For each call the daemon's policies are asked, and what they say goes onto the tape as a policy_verdict: nothing is held
// back for it.
//
// At the end the whole tape is read once more, as session.jsonl is derived from it. What was not told yet is told then, calls
// without a result too; and what was told otherwise than it stands there by now, where a secret became known late for example, is
// said in recording.json.

// Options say which daemon a run is told to, and as what.
type Options struct {
	URL    string // ws://HOST:PORT, wss://HOST:PORT or unix:PATH
	Intent string // what the run is for; must not be empty
	Agent  string // what the agent is called; the program's name when empty
	// Patience bounds how long the end of the recording waits for a daemon that does not answer. 0 is 5 s.
	Patience time.Duration

	Dial func(context.Context) (Sink, error) // of tests; nil dials URL
}

const defaultPatience = 5 * time.Second

// startTimeout bounds the connecting before the program starts.
const startTimeout = 15 * time.Second

// A Error says that the daemon to which a run was to be told cannot be reached, or refuses it. The program was not started.
type Error struct {
	URL  string
	Err  error
	Hint string // the next step
}

func (e *Error) Error() string {
	return fmt.Sprintf("the program was not started, for its run cannot be told to the daemon at %s: %v; %s", e.URL, e.Err, e.Hint)
}

func (e *Error) Unwrap() error { return e.Err }

// bareURL is a daemon's URL without what may be a secret.
func bareURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		before, _, _ := strings.Cut(s, "?")
		return before
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// A About is what a daemon is told of a run when it is opened there.
type About struct {
	ID      string // of the recording
	Path    string // of the recording
	Program string // its path
	Argv    []string
}

// Connect connects to the daemon that o names and opens the run there, before anything of the recording is written. s takes
// secrets out of what is told.
func Connect(ctx context.Context, o *Options, s *scrub.Scrubber, of *About) (*Run, error) {
	bare := bareURL(o.URL)
	refuse := func(err error, hint string) (*Run, error) {
		return nil, &Error{URL: bare, Err: err, Hint: hint}
	}
	if strings.TrimSpace(o.Intent) == "" {
		return refuse(errors.New("the run has no intent"), "say in a few words what it is for: --intent TEXT")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dial := o.Dial
	if dial == nil {
		dial = func(ctx context.Context) (Sink, error) { return dialRemote(ctx, o.URL) }
	}
	sink, err := dial(ctx)
	if err != nil {
		return refuse(err, nextStep(err))
	}
	d := &Run{sink: sink, scrub: s, book: &callBook{byID: make(map[string]*toldCall)}, Left: cmp.Or(o.Patience, defaultPatience)}
	d.start.Intent, d.start.AgentName = d.text(o.Intent), d.text(cmp.Or(o.Agent, AgentName(of.Program, of.Argv)))
	d.start.Recording = &rpcapi.Recording{ID: of.ID, Path: d.text(of.Path)}
	if err := d.open(ctx, of.ID); err != nil {
		sink.Close()
		return refuse(err, "look at what it says there, or record without --daemon")
	}
	d.Named.URL = d.text(bare)
	return d, nil
}

// nextStep is what to do about a daemon that cannot be connected to.
func nextStep(err error) string {
	switch {
	case errors.Is(err, client.ErrToken):
		return "run the recorder as the user of the daemon, with its XDG_RUNTIME_DIR"
	case errors.Is(err, client.Version):
		return "use the tapedeck of the daemon"
	}
	return "start one with `tapedeck serve`, or record without --daemon"
}

// interpreters run the program that their first argument names.
var interpreters = []string{"node", "nodejs", "bun", "deno", "python", "python3", "ruby", "perl", "php", "sh", "bash"}

// AgentName is what a program is called: by its file, or by that of the script which an interpreter runs.
func AgentName(path string, argv []string) string {
	name := programName(path)
	if len(argv) < 2 || argv[1] == "" || strings.HasPrefix(argv[1], "-") {
		return name
	}
	if slices.Contains(interpreters, name) || slices.Contains(interpreters, strings.TrimRight(filepath.Base(path), ".0123456789")) {
		return programName(argv[1])
	}
	return name
}

// programName is what an agent is called by whom nobody named: its program, without the ending.
func programName(path string) string {
	base := filepath.Base(path)
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" {
		return name
	}
	return base
}

// A Sink takes a run: a daemon, over a connection that is made again when it is lost. A *Refusal is its answer; after any other
// error whether it was done is not known.
type Sink interface {
	// Start opens a run, or returns to the one that the key names.
	Start(context.Context, *rpcapi.RunsStartParams) (*rpcapi.RunsStartResult, error)
	Record(ctx context.Context, run string, turns []json.RawMessage) (*rpcapi.RunsRecordTurnsResult, error)
	// Turns counts the turns of a run, those before from left out.
	Turns(ctx context.Context, run string, from int) (int, error)
	// Check returns a verdict of the daemon's policies, as policy.Verdict writes it.
	Check(context.Context, *rpcapi.PolicyCheckParams) (json.RawMessage, error)
	Complete(context.Context, *rpcapi.RunsCompleteParams) error
	Close() error
}

// A Refusal is what the daemon says in the place of a result.
type Refusal struct {
	Err     error
	Unknown bool // it does not have the method
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// refusalOf is the daemon's answer in err; nil for another error, and for none.
func refusalOf(err error) *Refusal {
	no, _ := errors.AsType[*Refusal](err)
	return no
}

// remote is a daemon.
type remote struct{ c *client.Client }

func dialRemote(ctx context.Context, url string) (Sink, error) {
	c, err := client.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	return &remote{c}, nil
}

func (s *remote) call(ctx context.Context, method string, params, result any) error {
	err := s.c.Call(ctx, method, params, result)
	if e, ok := errors.AsType[*client.Error](err); ok {
		return &Refusal{Err: err, Unknown: e.Code == client.MethodNotFound}
	}
	return err
}

// Start implements Sink. The client keeps the run open when it connects again.
func (s *remote) Start(ctx context.Context, p *rpcapi.RunsStartParams) (*rpcapi.RunsStartResult, error) {
	run, err := s.c.Start(ctx, *p)
	if err != nil {
		if _, ok := errors.AsType[*client.Error](err); ok {
			err = &Refusal{Err: err}
		}
		return nil, err
	}
	return &rpcapi.RunsStartResult{RunID: run.ID, AgentID: run.AgentID}, nil
}

// Record implements Sink.
func (s *remote) Record(ctx context.Context, run string, turns []json.RawMessage) (*rpcapi.RunsRecordTurnsResult, error) {
	var res rpcapi.RunsRecordTurnsResult
	err := s.call(ctx, rpcapi.RunsRecordTurns, map[string]any{"run_id": run, "turns": turns}, &res)
	return &res, err
}

// Turns implements Sink.
func (s *remote) Turns(ctx context.Context, run string, from int) (n int, err error) {
	cursor := from + 1 // the first record is none
	for {
		var res rpcapi.RunsGetTraceResult
		if err := s.call(ctx, rpcapi.RunsGetTrace, &rpcapi.RunsGetTraceParams{RunID: run, Cursor: cursor}, &res); err != nil {
			return n, err
		}
		if len(res.Records) == 0 {
			return n, nil
		}
		for _, line := range res.Records {
			if tag, _ := runtrace.Tag(line); tag == "turn" {
				n++
			}
		}
		cursor += len(res.Records)
	}
}

// Check implements Sink.
func (s *remote) Check(ctx context.Context, p *rpcapi.PolicyCheckParams) (verdict json.RawMessage, err error) {
	err = s.call(ctx, rpcapi.PolicyCheck, p, &verdict)
	return verdict, err
}

// Complete implements Sink.
func (s *remote) Complete(ctx context.Context, p *rpcapi.RunsCompleteParams) error {
	return s.call(ctx, rpcapi.RunsComplete, p, nil)
}

// Close implements Sink.
func (s *remote) Close() error { return s.c.Close() }

// Pauses between attempts to have an answer.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// errNoAnswer is why a daemon has not got something that is there and says nothing.
var errNoAnswer = errors.New("it did not answer in time")

// insist does something with the daemon until it has answered, or ctx ends: then the error says why it did not. A *Refusal is an answer.
func insist[T any](ctx context.Context, do func() (T, error)) (answer T, err error) {
	var last error
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if answer, err = do(); err == nil || refusalOf(err) != nil {
			return answer, err
		}
		if last == nil || ctx.Err() == nil { // the end of ctx tells nothing
			last = err
		}
		select {
		case <-ctx.Done():
			if errors.Is(last, context.DeadlineExceeded) || errors.Is(last, context.Canceled) {
				return answer, errNoAnswer
			}
			return answer, last
		case <-time.After(pause):
		}
	}
}

// A toldTurn is a call and the turn that it makes.
type toldTurn struct {
	call *toldCall
	json json.RawMessage
}

// Why a batch is not recorded: rpcapi.RunsRecordTurnsResult.Dropped.
const (
	DroppedTerminal = "run_terminal"
	droppedNotFound = "run_not_found"
	DroppedLimit    = "run_turn_limit"
)

// record records turns, once each: where an answer was lost, the daemon is asked what it has before it is given them again. What
// it refuses is lost, and counted; the error is that of a daemon that did not answer.
func (d *Run) record(ctx context.Context, batch []toldTurn) error {
	if d.full {
		return d.refused(batch, &Refusal{Err: errors.New(DroppedLimit)})
	}
	dropped, err := d.send(ctx, batch)
	switch {
	case err != nil:
		return err
	case dropped == "":
		return nil
	case dropped == DroppedTerminal || dropped == droppedNotFound:
		if err := d.goOn(ctx); err != nil {
			return d.refused(batch, err)
		}
		if dropped, err = d.send(ctx, batch); err != nil || dropped == "" {
			return err
		}
	}
	if len(batch) == 1 {
		d.full = dropped == DroppedLimit
		return d.refused(batch, &Refusal{Err: errors.New(dropped)})
	}
	for i := range batch { // it may be one of them alone
		if err := d.record(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// send sends a batch, and returns why the daemon did not record it; "" where it did.
func (d *Run) send(ctx context.Context, batch []toldTurn) (dropped string, err error) {
	res, err := insist(ctx, func() (_ *rpcapi.RunsRecordTurnsResult, err error) {
		if batch, err = d.landed(ctx, batch); err != nil || len(batch) == 0 {
			return nil, err
		}
		turns := make([]json.RawMessage, len(batch))
		for i := range batch {
			turns[i] = batch[i].json
		}
		d.flying = batch
		return d.sink.Record(ctx, d.run, turns)
	})
	switch no := refusalOf(err); {
	case no != nil:
		d.flying = nil
		return no.Error(), nil
	case err != nil || len(batch) == 0:
		return "", err
	}
	d.flying = nil
	if res.Dropped == "" {
		d.recorded(batch)
	}
	return res.Dropped, nil
}

// landed finds out what became of a batch whose answer was lost, and returns what of another is still to be sent. A batch is
// recorded whole or not at all.
func (d *Run) landed(ctx context.Context, batch []toldTurn) ([]toldTurn, error) {
	if len(d.flying) == 0 {
		return batch, nil
	}
	n, err := insist(ctx, func() (int, error) { return d.sink.Turns(ctx, d.run, d.acked) })
	if err != nil && refusalOf(err) == nil {
		return nil, err
	}
	switch was := d.flying; {
	case n >= len(was):
		d.recorded(was)
	case d.late: // it may be recorded yet: given again it might stand there twice
		_ = d.refused(was, errors.New("the daemon did not answer in time, so whether it has them is not known"))
	}
	d.flying = nil
	var left []toldTurn
	for _, t := range batch {
		if t.call.waits() {
			left = append(left, t)
		}
	}
	return left, nil
}

func (d *Run) recorded(batch []toldTurn) {
	d.acked += len(batch)
	d.Named.Turns += len(batch)
	for i := range batch {
		batch[i].call.told = cas.Sum(batch[i].json)
	}
}

// refused gives a batch up, for err. It returns err where the daemon did not answer: then the batch may be tried again.
func (d *Run) refused(batch []toldTurn, err error) error {
	if refusalOf(err) == nil && !d.late {
		return err
	}
	for i := range batch {
		batch[i].call.lost = true
		d.gaps.refuse(err.Error())
	}
	return nil
}

// maxContinued bounds how often a run goes on in another.
const maxContinued = 100

// goOn goes on in another run, for the daemon has ended this one: it was started again.
func (d *Run) goOn(ctx context.Context) error {
	if len(d.Named.Continued) == maxContinued {
		return &Refusal{Err: errors.New("the daemon ended the run again and again")}
	}
	start := d.start
	start.IdempotencyKey = fmt.Sprintf("%s-%d", d.Named.RunID, len(d.Named.Continued)+2)
	start.OutcomeDescription = "goes on from run " + d.run + ", which its daemon ended"
	res, err := insist(ctx, func() (*rpcapi.RunsStartResult, error) { return d.sink.Start(ctx, &start) })
	if err != nil {
		return err
	}
	d.Named.Continued = append(d.Named.Continued, res.RunID)
	d.run, d.acked, d.full = res.RunID, 0, false
	return nil
}
