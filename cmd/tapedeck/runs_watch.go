package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

type runsWatchOptions struct {
	agent string
}

const (
	// watchPatience is how long a daemon may be away while a run is watched.
	watchPatience = 10 * time.Minute
	// watchPause is how long it takes to see that a run has begun.
	watchPause = 300 * time.Millisecond
)

func newRunsWatchCommand(from *runsOptions, std *console) *cobra.Command {
	var o runsWatchOptions
	cmd := withHelp("runs watch", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return takes("RUN")(cmd, args)
		},
		ValidArgsFunction: runNames(from),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return runRunsWatch(cmd.Context(), from, &o, name, std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the newest run of this `agent` that goes on")
	std.jsonFlag(cmd, "an object a line")
	_ = cmd.RegisterFlagCompletionFunc("agent", agentNames(from))
	return cmd
}

// A runView is where a watched run is shown.
type runView interface {
	// wait says that there is no run yet.
	wait(what string) error
	// record takes the next record of the run.
	record(rec runtrace.Record, line []byte) error
	// end is called once, when nothing more comes.
	end() error
}

func runRunsWatch(ctx context.Context, from *runsOptions, o *runsWatchOptions, name string, std *console) error {
	if name != "" && o.agent != "" {
		return errors.New("RUN and --agent each say which run to watch: leave one out")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	src, err := from.open(ctx, std.err, watchPatience)
	if err != nil {
		return interruptedIs130(err)
	}
	defer src.Close()
	id := runtrace.ID{}
	if name != "" {
		if id, err = findRun(ctx, src, name); err != nil {
			return interruptedIs130(err)
		}
	}
	w := &runWatch{src: src, id: id, agent: o.agent}
	if !std.json && isTerminal(std.out) && os.Getenv("TERM") != "dumb" {
		return interruptedIs130(watchOnScreen(ctx, w, std))
	}
	var view runView = &plainView{std: std}
	if std.json {
		view = &jsonView{plainView{std: std}}
	}
	return interruptedIs130(errors.Join(w.follow(ctx, view), view.end()))
}

func interruptedIs130(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &statusError{status: 128 + int(syscall.SIGINT)}
	case errors.Is(err, syscall.EPIPE): // who read has seen enough
		return nil
	}
	return err
}

// A runWatch brings the records of one run to a view.
type runWatch struct {
	src   runSource
	id    runtrace.ID // zero: the newest that goes on
	agent string
}

// follow finds the run and gives view its records, to the last. It returns when the run has ended, or with an error.
func (w *runWatch) follow(ctx context.Context, view runView) error {
	if err := w.find(ctx, view); err != nil {
		return err
	}
	for line, err := range w.src.Follow(ctx, w.id) {
		if err != nil {
			return err
		}
		rec, err := runtrace.Parse(line)
		if err == nil {
			err = view.record(rec, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find is the newest run that goes on, where none is named; else it waits for the next that begins, which may have ended by the
// time that it is seen.
func (w *runWatch) find(ctx context.Context, view runView) error {
	if w.id != (runtrace.ID{}) {
		return nil
	}
	runs, err := w.src.Runs(ctx, w.agent, 0)
	if err != nil {
		return err
	}
	before := map[runtrace.ID]bool{}
	for _, r := range runs {
		if r.Status == string(runtrace.InProgress) {
			w.id = idOf(r)
			return nil
		}
		before[idOf(r)] = true
	}
	if err := view.wait(w.awaited()); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchPause):
		}
		if runs, err = w.src.Runs(ctx, w.agent, 0); err != nil {
			return err
		}
		for _, r := range slices.Backward(runs) { // the newest stand first
			if !before[idOf(r)] {
				w.id = idOf(r)
				return nil
			}
		}
	}
}

func (w *runWatch) awaited() string {
	if w.agent != "" {
		return "no run of agent " + w.agent + " goes on: waiting for one"
	}
	return "no run goes on: waiting for one"
}

// A plainView shows each turn as a line.
type plainView struct {
	std *console
	run runview.Run
}

func (v *plainView) wait(what string) error {
	_, err := visible.Fprintf(v.std.err, "tapedeck: %s\n", what)
	return err
}

func (v *plainView) record(rec runtrace.Record, _ []byte) error {
	v.run.Add(rec)
	switch {
	case rec.Started != nil:
		_, err := visible.Fprintf(v.std.out, "run %s of agent %s: %s\n", v.run.ID, v.run.Agent, strings.Join(strings.Fields(v.run.Intent), " "))
		return err
	case rec.Turn != nil:
		return raw(v.std.out, "%s\n", v.run.Turns[len(v.run.Turns)-1].Line(colour(v.std.out)))
	}
	return nil
}

func (v *plainView) end() error {
	if v.run.ID == "" {
		return nil
	}
	_, err := visible.Fprintf(v.std.out, "%s\n", v.run.Summary(time.Now()))
	if o := v.run.Outcome; err == nil && o != nil && o.Summary != "" {
		_, err = visible.Fprintf(v.std.out, "%s\n", o.Summary)
	}
	return err
}

// A jsonView shows each record as an object on a line.
type jsonView struct{ plainView }

func (v *jsonView) record(rec runtrace.Record, line []byte) error {
	v.run.Add(rec)
	return raw(v.std.out, "{\"version\":%d,\"run_id\":%q,\"cursor\":%d,\"record\":%s}\n", jsonVersion, v.run.ID, v.run.Records(), line)
}

func (v *jsonView) end() error {
	if v.run.ID == "" {
		return nil
	}
	end := watchEnd{Status: v.run.Status, Turns: len(v.run.Turns)}
	if v.run.Outcome != nil {
		end.Outcome = v.run.Outcome.Status
	}
	return printLine(v.std.out, struct {
		RunID string   `json:"run_id"`
		End   watchEnd `json:"end"`
	}{v.run.ID, end})
}

// watchEnd is the last line of --json.
type watchEnd struct {
	Status  string `json:"status"`
	Turns   int    `json:"turns"`
	Outcome string `json:"outcome,omitempty"`
}

// runEnded reports whether a run has its last record.
func runEnded(r *runview.Run) bool { return r.Status != "" && r.Status != runview.InProgress }

// errQuit is the end that a key asked for.
var errQuit = errors.New("quit")

const (
	screenEvery = 100 * time.Millisecond                   // between two pictures
	screenKeys  = "↑ ↓ another turn · end newest · q quit" // fits 40 columns
)

// A screenView draws a run on a terminal, on a screen of its own, and leaves the last picture on the terminal's own.
// Records come from the goroutine that follows the run; draw, keys and close are the caller's.
type screenView struct {
	w    io.Writer
	o    runview.Frame
	size func() (cols, rows int)

	mu      sync.Mutex
	run     runview.Run
	waiting string

	drawn      []string // what stands on the screen
	cols, rows int
}

func (v *screenView) wait(what string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = what
	return nil
}

func (v *screenView) record(rec runtrace.Record, _ []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = ""
	v.run.Add(rec)
	return nil
}

func (v *screenView) end() error { return nil }

// watchOnScreen draws the run until it ends, the keys say so, or ctx ends.
func watchOnScreen(ctx context.Context, w *runWatch, std *console) error {
	caller := terminal.NewCaller([3]any{std.in, std.out, std.err})
	defer caller.Close()
	keys, release, err := takeKeys(caller, std)
	if err != nil {
		return err
	}
	v := &screenView{w: std.out, o: runview.Frame{Colour: colour(std.out), Selected: -1}, size: sizeOf(caller)}
	if keys != nil {
		v.o.Keys = screenKeys
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- w.follow(ctx, v) }() // ends with ctx; awaited below
	v.open()
	err, ended := v.loop(ctx, w, keys, over)
	cancel()
	if !ended {
		<-over
	}
	v.close()
	release()
	if errors.Is(err, errQuit) {
		return nil
	}
	return err
}

// takeKeys makes the terminal ours and hears its keys; nil where there are none to hear.
func takeKeys(caller *terminal.Caller, std *console) (keys <-chan string, release func(), err error) {
	if caller == nil || !isTerminal(std.in) || !caller.Foreground() {
		return nil, func() {}, nil
	}
	if err := caller.Take(true); err != nil {
		return nil, nil, err
	}
	keys, stop, err := heard(caller, keyNames)
	if err != nil {
		caller.Release(true)
		return nil, nil, err
	}
	return keys, func() { stop(); caller.Release(true) }, nil
}

// keyNames names the keys that were typed: one sends one character, or a sequence that begins with ESC.
func keyNames(b []byte) (names []string) {
	for len(b) > 0 {
		n := 1
		if b[0] == 0x1b && len(b) > 2 && (b[1] == '[' || b[1] == 'O') {
			for n = 2; n < len(b)-1 && (b[n] < 0x40 || b[n] > 0x7e); {
				n++
			}
			n++
		}
		names = append(names, cmp.Or(terminal.KeyName(b[:n]), string(b[:n]))) // a character has no other name
		b = b[n:]
	}
	return names
}

// sizeOf tells how large the terminal is, 24 by 80 where it does not say.
func sizeOf(caller *terminal.Caller) func() (cols, rows int) {
	return func() (int, int) {
		if s, ok := caller.Size(); ok && s.Cols > 0 && s.Rows > 0 {
			return s.Cols, s.Rows
		}
		return 80, 24
	}
}

// loop draws until there is a reason to end; ended tells that following the run has.
func (v *screenView) loop(ctx context.Context, w *runWatch, keys <-chan string, over <-chan error) (err error, ended bool) {
	tick := time.NewTicker(screenEvery)
	defer tick.Stop()
	for {
		if err := v.draw(w.src.Connected()); err != nil {
			return err, false
		}
		select {
		case <-ctx.Done():
			return ctx.Err(), false
		case err := <-over:
			return err, true
		case <-tick.C:
			v.o.Beat++
		case k := <-keys:
			if err := v.key(k); err != nil {
				return err, false
			}
		}
	}
}

// key does what a key is for.
func (v *screenView) key(name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.run.Turns)
	at := v.o.Selected
	if at < 0 || at >= n {
		at = n - 1
	}
	switch name {
	case "q":
		return errQuit
	case "ctrl-c", "ctrl-d":
		return context.Canceled
	case "up", "k":
		at--
	case "down", "j":
		at++
	case "pageup":
		at -= v.rows / 2
	case "pagedown", " ", "space":
		at += v.rows / 2
	case "home", "g":
		at = 0
	case "end", "G", "escape":
		at = n
	default:
		return nil
	}
	v.o.Selected = max(0, at)
	if at >= n-1 { // the newest, and whatever comes after it
		v.o.Selected = -1
	}
	return nil
}

func (v *screenView) picture(connected bool) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.o
	f.Cols, f.Rows, f.Now = v.cols, v.rows, time.Now()
	f.News = v.waiting
	if !connected && !runEnded(&v.run) {
		f.News = "the daemon is gone: trying again"
	}
	return f.Draw(&v.run)
}

func (v *screenView) open() {
	raw(v.w, "\x1b[?1049h\x1b[?25l") // a screen of its own, without a cursor
}

// draw writes the rows that have changed.
func (v *screenView) draw(connected bool) error {
	var b strings.Builder
	if cols, rows := v.size(); cols != v.cols || rows != v.rows {
		v.cols, v.rows, v.drawn = cols, rows, nil
		b.WriteString("\x1b[2J")
	}
	lines := v.picture(connected)
	for i, line := range lines {
		if i < len(v.drawn) && v.drawn[i] == line {
			continue
		}
		// A character that is wider here than there must not push the rest into the next row: no wrapping. The row is cleared before
		// it is written: behind a full one the cursor of many terminals stands on the last column, and would clear that.
		raw(&b, "\x1b[%d;1H\x1b[K\x1b[?7l%s\x1b[?7h", i+1, line)
	}
	v.drawn = lines
	if b.Len() == 0 {
		return nil
	}
	return raw(v.w, "\x1b[?2026h%s\x1b[?2026l", b.String()) // shown at once, where a terminal knows how
}

// close gives the terminal its own screen back and leaves the last picture there.
func (v *screenView) close() {
	raw(v.w, "\x1b[?25h\x1b[?1049l")
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.run.ID == "" {
		return
	}
	f := v.o
	f.Cols, f.Rows, f.Now, f.Settled = v.cols, max(1, v.rows-1), time.Now(), true
	raw(v.w, "%s\r\n", strings.Join(f.Draw(&v.run), "\r\n"))
}
