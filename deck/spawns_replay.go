package deck

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// onTape returns the recorded conversation that a spawn was; where there is none, what a Relay refuses those with that it turns out
// to be. While recording both are nil.
func (w *spawns) onTape(sp *jail.Spawn, by uint32) (served *mcp.Served, refuse *noServer) {
	if w.recorded == nil {
		return nil, nil
	}
	o, book := w.opened(sp, by), w.recorded.book
	if w.recorded.programs[filepath.Base(sp.Path)] {
		secrets.LearnArgs(w.s.scrub, o.Args) // as was done when it turned out to be a server
	}
	if w.running.records(w, sp, o) {
		return nil, nil
	}
	served, why := book.Spawn(o.Program, o.Args)
	if served == nil {
		refuse = &noServer{w: w, opened: o, answer: book.Refusal(o.Program, o.Args, why), why: why}
	}
	return served, refuse
}

// A noServer answers in the place of a server that is on no tape. What is said so stands on the replay's tape.
type noServer struct {
	w      *spawns
	opened *mcp.Opened
	answer func(line []byte) []byte
	why    string

	conversation *mcp.Conversation // nil before the first line
}

// line takes one line of the client, and returns what it gets.
func (r *noServer) line(line []byte) []byte {
	if r.conversation == nil {
		r.conversation = r.w.s.mcp.Begin(r.opened)
	}
	answer := r.answer(line)
	if err := r.keep(line, answer); err != nil {
		r.w.fail(err)
		return nil
	}
	return answer
}

func (r *noServer) keep(line, answer []byte) error {
	if err := r.conversation.Line(mcp.Client, line, 0); err != nil || len(answer) == 0 {
		return err
	}
	asked, _, _ := mcp.Parse(line) // it was answered, so it is a message
	for _, m := range asked {
		if m.IsRequest() {
			r.conversation.Fault(mcp.Client, m.ID, mcp.RefusedAs+r.why)
		}
	}
	return r.conversation.Line(mcp.Server, answer, 0)
}

// serve answers in the place of a recorded server, behind a process that does nothing but wait and ends as the server did.
func (w *spawns) serve(sp *jail.Spawn, st *jail.Streams, served *mcp.Served, by uint32) {
	defer closeAll(st.Near[:])
	opened := w.opened(sp, by)
	opened.Latest = func() string { return served.Recorded().Program } // it answers at the first try along PATH
	ctx, stop := context.WithCancel(w.cut)
	defer stop()
	end := make(chan jail.Ended, 1)
	go func() {
		e := w.endOf(sp)
		stop() // nobody talks with a process that is gone
		end <- e
	}()
	c, again, exit, err := w.serveOn(ctx, st, served, opened, by)
	if err == nil && served.Asked() { // else some of it may be what a call changed that was not made
		err = again.until(math.MaxUint64) // what it changed when nobody listened any more
	}
	if err != nil {
		w.fail(err)
	}
	byTape, recorded := ctx.Err() == nil, w.recorded.ends[opened.Recorded.Conversation]
	endStub(sp, st, recorded.Signal, exit)
	now := serverEnd(<-end)
	if byTape || raced(recorded, now) {
		now = recorded
	}
	w.ended(c, now)
}

// raced reports whether the end of a process that stood for a server says nothing against the recorded one. It may be that of the end
// of the program's world. A signal that a server may take in its own way ended the process, which has none; and where the server had
// failed by itself, who kills it may come before or after that.
func raced(recorded, now mcp.Ended) bool {
	switch {
	case !now.Exited:
		return true
	case now.Signal == "SIGKILL":
		return recorded.ExitCode != 0
	}
	return now.Signal != "" && recorded.Exited
}

// serveOn answers until the talk has ended, and closes what it was held on.
func (w *spawns) serveOn(
	ctx context.Context, st *jail.Streams, served *mcp.Served, opened *mcp.Opened, by uint32,
) (c *mcp.Conversation, again *redoing, exit int, err error) {
	defer closeAll(st.Far[:])
	defer context.AfterFunc(ctx, func() { hangUp(&st.Far) })()
	c, again, o, err := w.settled(ctx, st, served, opened, by)
	w.pids.addServer(opened.PID, opened.Recorded.Conversation)
	if err != nil {
		return c, again, 0, err
	}
	exit, err = served.Serve(ctx, &o)
	return c, again, exit, err
}

// settled finds out which of equal conversations it is that a client holds, begins it on the tape, and says how it is answered.
func (w *spawns) settled(ctx context.Context, st *jail.Streams, served *mcp.Served, opened *mcp.Opened, by uint32) (*mcp.Conversation, *redoing, mcp.ServeOptions, error) {
	err := served.Settle(ctx, &mcp.SettleOptions{In: st.Far[0], Out: st.Far[1], Reveal: w.recorded.reveal, Changed: w.recorded.changedBefore})
	opened.Recorded = served.Recorded()
	c, again := w.s.mcp.Begin(opened), w.redoing(opened.Recorded.Conversation, by)
	o := mcp.ServeOptions{In: st.Far[0], Out: st.Far[1], Log: c, Speed: w.speed, Reveal: w.recorded.reveal, Before: again.until}
	if st.Far[2] != nil {
		o.Err = st.Far[2]
	}
	return c, again, o, err
}

// hangUp ends what waits to be read or written where the process that stands for a server is gone. What that had written to its stderr may
// still be read, as far as there is room for it.
func hangUp(far *[3]*os.File) {
	closeAll(far[:2])
	if far[2] != nil && far[2].SetWriteDeadline(time.Now().Add(lastWords)) != nil { // none that can be waited for
		far[2].Close()
	}
}

// lastWords is how long a client that has killed its server has to make room for what that wrote to its stderr.
const lastWords = 100 * time.Millisecond

// changedBefore reports whether a recorded server had changed files before the record of that seq.
func (r *recordedConversations) changedBefore(conversation, seq uint64) bool {
	changes := r.changes[conversation]
	return len(changes) > 0 && changes[0].Seq < seq
}

// redoing is what a recorded server changed in files.
func (w *spawns) redoing(conversation uint64, by uint32) *redoing {
	return &redoing{
		c: w.changing, changes: w.recorded.changes[conversation], made: make(map[string]bool),
		o: files.RedoOptions{Store: w.recorded.blobs, By: by, Reveal: w.recorded.reveal, Kept: w.running != nil},
		lost: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.left = append(w.left, w.s.scrub.String(fmt.Sprintf("what an MCP server changed: %v", err)))
		},
	}
}

// endStub ends the process that stands for a server, in the way in which that ended: by signal, where it is not "", else with exit. It
// may be gone already.
func endStub(sp *jail.Spawn, st *jail.Streams, signal string, exit int) {
	if sig := procgroup.Named(signal); sig != 0 && sp.Signal(sig) == nil {
		return
	}
	_, _ = st.Near[0].Write([]byte{byte(exit)})
}

// closeAll closes files, of which some may be nil, one file twice, or closed.
func closeAll(files []*os.File) {
	for i, f := range files {
		if f != nil && !slices.Contains(files[:i], f) {
			f.Close()
		}
	}
}
