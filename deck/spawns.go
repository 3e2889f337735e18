package deck

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// spawns is told of each program that somebody in the jail starts and talks with. While recording it stands between the two, and
// what turns out to be a conversation with an MCP server is on the tape; on a replay it answers in the place of the recorded
// servers, whose programs do not run. Each talk has goroutines of its own, which end with it; drain waits for them.
type spawns struct {
	s        *session
	changing *changing
	recorded *recordedConversations // of a replay: what it answers from; nil while recording
	running  *running               // of a fork: recorded servers whose programs run; nil for none
	speed    float64                // of a replay: as in ReplayOptions
	hears    bool                   // what passes on the streams of other processes than servers is recorded
	own      []string               // variables of the run's program
	inputs   *processes             // nil: of each nothing more is known

	cut context.Context // done when the talks are to end at once
	end context.CancelFunc

	talks sync.WaitGroup
	over  chan struct{} // closed when the program has ended, and every process that it left running has been killed

	mu       sync.Mutex
	draining bool                   // no talk begins any more
	lost     []string               // talks that could not be looked into, and why
	first    map[uint64]*jail.Spawn // that live, by Key, as they were told of first
	found    map[uint64]string      // where their programs were looked for last, as paths of the tape
	left     []string               // changes of recorded servers that could not be made again, and why
}

func newSpawns(s *session, c *changing, recorded *recordedConversations) *spawns {
	w := &spawns{
		s: s, changing: c, recorded: recorded, over: make(chan struct{}),
		first: make(map[uint64]*jail.Spawn), found: make(map[uint64]string),
	}
	w.cut, w.end = context.WithCancel(s.failed)
	return w
}

// watcher is w for a jail whose program has the variables env; nil where nothing is to be told.
func (w *spawns) watcher(env []string) jail.SpawnWatcher {
	if w == nil {
		return nil
	}
	w.own = env
	return w
}

// Spawning implements jail.SpawnWatcher.
func (w *spawns) Spawning(sp *jail.Spawn) *jail.SpawnAnswer {
	if sp.Again { // what is said passes here already
		w.tried(sp)
		return nil
	}
	if sp.InputOnly && !w.hears || !w.begin(sp) {
		return nil
	}
	if sp.InputOnly {
		return w.listen(sp)
	}
	within := w.within(sp)
	by := w.changing.servers.add(sp.PID)
	st, err := sp.Streams()
	if err != nil {
		w.lose(sp, err)
		w.forget(sp, by)
		return nil
	}
	answer := &jail.SpawnAnswer{Stdio: st.Put, Failed: func(err error) { w.lose(sp, err) }}
	served, refuse := w.onTape(sp, by)
	runs := served != nil && w.running.has(served.Recorded().Server)
	answer.Stub = served != nil && !runs
	var passed *listening // of what may be no server
	if served == nil && w.hears {
		passed = &listening{done: w.changing.servers.settled(by)}
		w.changing.servers.listens(sp.PID, passed)
	}
	go func() {
		defer w.forget(sp, by)
		switch {
		case runs:
			w.takeOver(sp, st, served, by)
		case served != nil:
			w.serve(sp, st, served, by)
		default:
			w.relay(sp, st, refuse, by, within, passed)
		}
	}()
	return answer
}

// begin makes room for one talk, which forget ends. False says that the program has ended: whoever starts something now is killed.
func (w *spawns) begin(sp *jail.Spawn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return false
	}
	w.first[sp.Key] = sp
	w.talks.Add(1)
	return true
}

// within is the conversation of the server that starts something; 0 for the program, and where no server runs.
func (w *spawns) within(sp *jail.Spawn) uint64 {
	if w.recorded != nil && w.running == nil {
		return 0
	}
	return w.changing.servers.within(sp.PID)
}

// forget ends a talk, and lets go of what is known of it.
func (w *spawns) forget(sp *jail.Spawn, by uint32) {
	w.changing.servers.gone(sp.PID, by)
	w.letGo(sp)
}

// letGo lets go of a talk, whose goroutine ends.
func (w *spawns) letGo(sp *jail.Spawn) {
	defer w.talks.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.first, sp.Key)
	delete(w.found, sp.Key)
}

// listen stands between a program and the input of one that it started, whose output goes elsewhere.
func (w *spawns) listen(sp *jail.Spawn) *jail.SpawnAnswer {
	st, err := sp.Streams()
	if err != nil {
		w.lose(sp, err)
		w.letGo(sp)
		return nil
	}
	heard, done := newHeardStreams(w.s), make(chan struct{})
	w.changing.servers.listens(sp.PID, &listening{heard, done})
	o := &mcp.RelayOptions{ClientIn: st.Far[0], ServerIn: st.Near[0], Heard: heard.left}
	if info, err := st.Far[0].Stat(); err == nil && info.Mode()&os.ModeSocket != 0 { // which has two directions
		o.ClientOut, o.ServerOut = st.Far[0], st.Near[0]
	}
	go func() {
		defer w.letGo(sp)
		defer close(done)
		if _, err := mcp.Relay(w.cut, o); err != nil {
			w.fail(err)
		}
		heard.left.Whole[1] = false // that is not its output
	}()
	return &jail.SpawnAnswer{Stdio: st.Put, Failed: func(err error) { w.lose(sp, err) }}
}

// opened says who is talked with, whose changes of files are known as by.
func (w *spawns) opened(sp *jail.Spawn, by uint32) *mcp.Opened {
	o := &mcp.Opened{Transport: mcp.Stdio, Program: w.s.roots.TapePath(sp.Path), Cwd: w.s.roots.TapePath(sp.Dir), PID: sp.Own}
	o.Before = func(conversation uint64) error {
		w.changing.servers.talks(by, conversation)
		return w.changing.look(by)
	}
	_, client := lineage(sp.PID)
	o.Giving = w.inputs.givingTo(client, by)
	o.Begun = func(conversation uint64) { w.changing.servers.talks(by, conversation) }
	o.Latest = func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return cmp.Or(w.found[sp.Key], o.Program)
	}
	o.Environ = func() []string {
		env, err := sp.Environ()
		if err != nil {
			w.s.log.Warn("the variables of a server cannot be seen: secrets in them are not known by their names", "program", sp.Path, "err", err)
		}
		return append(env, sp.Env...) // the stub of a replay may not run yet
	}
	o.Given = func() []string { return w.given(sp.Env) }
	if len(sp.Argv) > 0 {
		o.Args = sp.Argv[1:]
	}
	return o
}

// given lists the variables of env that the run's program does not have, or has with another value, without secrets.
func (w *spawns) given(env []string) (out []string) {
	beyond := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return slices.Contains(w.own, v) })
	for _, v := range w.s.scrub.Env(beyond) {
		out = append(out, v.Name+"="+v.Value)
	}
	slices.Sort(out)
	return out
}

// tried notes where a program was looked for next along PATH: the last one of these is what runs. What it executes itself later has
// another name, or other arguments.
func (w *spawns) tried(sp *jail.Spawn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, ok := w.first[sp.Key]
	if ok && filepath.Base(sp.Path) == filepath.Base(first.Path) && slices.Equal(sp.Argv, first.Argv) {
		w.found[sp.Key] = w.s.roots.TapePath(sp.Path)
	}
}

// relay stands between a program and the one that it started.
func (w *spawns) relay(sp *jail.Spawn, st *jail.Streams, refuse *mcp.Refusal, by uint32, within uint64, passed *listening) {
	opened := w.opened(sp, by)
	opened.Within = within
	o := &mcp.RelayOptions{
		Log: w.s.mcp, Opened: opened,
		ClientIn: st.Far[0], ClientOut: st.Far[1], ClientErr: st.Far[2],
		ServerIn: st.Near[0], ServerOut: st.Near[1], ServerErr: st.Near[2], Refuse: refuse,
	}
	heard := newHeardStreams(w.s)
	if passed != nil {
		o.Heard = heard.left
	}
	c, err := mcp.Relay(w.cut, o)
	if err != nil {
		w.fail(err)
	}
	switch {
	case c != nil:
		w.ended(c, serverEnd(w.endOf(sp)))
	case err == nil && passed != nil:
		passed.heard = heard
	}
}

// ended puts the end of a conversation on the tape.
func (w *spawns) ended(c *mcp.Conversation, e mcp.Ended) {
	if err := c.End(e); err != nil {
		w.fail(err)
	}
}

// fail ends the run, as whatever cannot be recorded does.
func (w *spawns) fail(err error) {
	w.s.fail(conversationFailed(err))
}

// lose notes a talk that could not be looked into.
func (w *spawns) lose(sp *jail.Spawn, err error) {
	w.s.log.Warn("what is said with a program cannot be seen", "program", sp.Path, "err", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = append(w.lost, w.s.scrub.String(filepath.Base(sp.Path))+": "+err.Error())
}

// unseen lists the talks that could not be looked into.
func (w *spawns) unseen() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, l := range w.lost {
		out = append(out, gapMCP+": what was said with "+l)
	}
	return out
}

// unmade lists the changes of recorded servers that could not be made again.
func (w *spawns) unmade() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
}

// endOfServer is how long the end of a process is waited for when its whole world is gone: it comes at once.
const endOfServer = time.Second

// endOf waits for the end of the process behind sp.
func (w *spawns) endOf(sp *jail.Spawn) jail.Ended {
	ended := sp.Ended()
	select {
	case e := <-ended:
		return e
	case <-w.over:
	case <-w.cut.Done():
	}
	select {
	case e := <-ended:
		return e
	case <-time.After(endOfServer):
		return jail.Ended{}
	}
}

// serverEnd is how a server ended. What was killed because the program had ended would have ended in a way that nobody knows.
func serverEnd(e jail.Ended) mcp.Ended {
	if !e.Known || e.Left && e.Exit.Signal == syscall.SIGKILL {
		return mcp.Ended{}
	}
	exit := exitOf(e.Exit)
	return mcp.Ended{Exited: true, ExitCode: exit.Code, Signal: exit.Signal}
}

// endOfTalks is how long talks are waited for when both of their sides are gone: what is left of them is in pipes then, and passes as
// fast as who called us takes it.
const endOfTalks = 30 * time.Second

// drain waits for the end of all talks, once nothing of the program's world is left.
func (w *spawns) drain() {
	if w == nil {
		return
	}
	close(w.over)
	w.mu.Lock()
	w.draining = true
	w.mu.Unlock()
	defer time.AfterFunc(endOfTalks, w.end).Stop()
	w.talks.Wait()
}

// stop cuts what talks are left.
func (w *spawns) stop() {
	if w != nil {
		w.end()
	}
}

// maxHeard is how much of each stream of a process that the program started is kept, in bytes. It compares as far as that.
const maxHeard = 1 << 20

// heardStreams are the standard streams of a process that somebody talked with, which is no server: what it was given and what it wrote.
type heardStreams struct {
	to   [3]*heardStream
	left *mcp.Heard
}

// A heardStream keeps the beginning of one stream, scrubbed.
type heardStream struct {
	clean *scrub.Writer
	spool *spool.Spool
	room  int
	cut   bool
}

func newHeardStreams(s *session) *heardStreams {
	h := &heardStreams{left: new(mcp.Heard)}
	for i := range h.to {
		sp := spool.New(s.store)
		h.to[i] = &heardStream{clean: s.scrub.Writer(sp), spool: sp, room: maxHeard}
		h.left.To[i] = h.to[i]
	}
	return h
}

// Write implements io.Writer. What finds no room is dropped.
func (h *heardStream) Write(b []byte) (int, error) {
	n := min(len(b), h.room)
	h.room -= n
	h.cut = h.cut || n < len(b)
	if n == 0 {
		return len(b), nil
	}
	if _, err := h.clean.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// add puts the streams on the record of their process. Those that were not taken are absent there.
func (h *heardStreams) add(k *tape.ProcessSpawn) (err error) {
	cut := make(map[string]bool)
	for i, to := range []**tape.Payload{&k.Stdin, &k.Stdout, &k.Stderr} {
		if *to, err = h.to[i].spool.Finish(h.to[i].clean.Close()); err != nil {
			return err
		}
		cut[tape.CutKeys[i]] = h.to[i].cut || !h.left.Whole[i]
	}
	k.Extra = append(k.Extra, tape.FlagFields(cut)...)
	return nil
}
