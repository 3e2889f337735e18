package deck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/mcptest"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// onTape returns the recorded conversation that a spawn was; where there is none, what a Relay refuses those with that it turns out
// to be. While recording both are nil.
func (w *spawns) onTape(sp *jail.Spawn, by uint32) (served *mcp.Served, refuse *mcp.Refusal) {
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
		refuse = book.Refusal(o.Program, o.Args, why)
	}
	return served, refuse
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
	// The process that stands for the server ends as that did. It may be gone already.
	if sig := procgroup.Named(recorded.Signal); sig == 0 || sp.Signal(sig) != nil {
		_, _ = st.Near[0].Write([]byte{byte(exit)})
	}
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
	defer leaveClient(&st.Far)
	defer context.AfterFunc(ctx, func() { hangUp(&st.Far) })()
	c, again, o, err := w.settled(ctx, st, served, opened, by)
	w.inputs.addServer(opened.PID, opened.Recorded.Conversation)
	if err != nil {
		return c, again, 0, err
	}
	exit, err = served.Serve(ctx, &o)
	return c, again, exit, err
}

// settled finds out which of equal conversations it is that a client holds, begins it on the tape, and says how it is answered.
func (w *spawns) settled(ctx context.Context, st *jail.Streams, served *mcp.Served, opened *mcp.Opened, by uint32) (*mcp.Conversation, *redoing, mcp.ServeOptions, error) {
	o := mcp.ServeOptions{In: st.Far[0], Out: st.Far[1], Speed: w.speed, Reveal: w.recorded.reveal}
	err := served.Settle(ctx, &o, w.recorded.changedBefore)
	opened.Recorded = served.Recorded()
	c, again := w.s.mcp.Begin(opened), w.redoing(opened.Recorded.Conversation, by)
	o.Log, o.Before = c, again.until
	if st.Far[2] != nil {
		o.Err = st.Far[2]
	}
	return c, again, o, err
}

// hangUp ends what waits to be read or written where the process that stands for a server is gone. What that had written to its stderr may
// still be read, as far as there is room for it.
func hangUp(far *[3]*os.File) {
	mcp.Leave(far[0])
	far[1].Close()
	if far[2] != nil && far[2].SetWriteDeadline(time.Now().Add(lastWords)) != nil { // none that can be waited for
		far[2].Close()
	}
}

// leaveClient closes what a client talks with.
func leaveClient(far *[3]*os.File) {
	mcp.Leave(far[0])
	closeAll(far[:])
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

// closeAll closes files, of which some may be nil, one file twice, or closed.
func closeAll(files []*os.File) {
	for i, f := range files {
		if f != nil && !slices.Contains(files[:i], f) {
			f.Close()
		}
	}
}

// recordedConversations are the conversations with MCP servers that a replay answers from.
type recordedConversations struct {
	book     *mcp.Book
	taken    uint64                    // the highest number of one
	stdio    int                       // how many are over stdio
	ends     map[uint64]mcp.Ended      // how their servers ended, by number
	changes  map[uint64][]*tape.Record // what they changed in files, by number
	within   map[uint64]uint64         // of those that servers held as clients: the conversation of that server, by number
	programs map[string]bool           // what servers were started as, without their directories
	blobs    cas.Store
	reveal   func([]byte) []byte
}

// newRecordedConversations reads the conversations of the tape whose records are given, with what the redactor knows. hold is that of mcp.BookOptions.
func newRecordedConversations(
	g *redactor, records iter.Seq2[*tape.Record, error], blobs cas.Store, reveal func([]byte) []byte, hold time.Duration,
) (*recordedConversations, error) {
	t := &recordedConversations{
		blobs: blobs, reveal: reveal, ends: make(map[uint64]mcp.Ended), changes: make(map[uint64][]*tape.Record), programs: make(map[string]bool),
		within: make(map[uint64]uint64),
	}
	var err error
	t.book, err = mcp.NewBook(func(yield func(*tape.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				t.survey(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, blobs, &mcp.BookOptions{Scrub: g.scrub, Mask: g.mask, Hold: hold})
	t.takeOver()
	return t, err
}

// takeOver gives the changes of servers that servers talked with to those that the program did: nobody else comes with a request.
func (t *recordedConversations) takeOver() {
	for n := range t.within {
		top, seen := n, 0
		for t.within[top] != 0 && seen <= len(t.within) {
			top, seen = t.within[top], seen+1
		}
		if changes := t.changes[n]; len(changes) > 0 && top != n {
			t.changes[top] = append(t.changes[top], changes...)
			slices.SortFunc(t.changes[top], func(a, b *tape.Record) int { return cmp.Compare(a.Seq, b.Seq) })
			delete(t.changes, n)
		}
	}
}

// survey remembers what the Book does not tell.
func (t *recordedConversations) survey(rec *tape.Record) {
	switch k := rec.Kind.(type) {
	case *tape.FileWrite, *tape.FileDelete:
		if n := files.ConversationOf(k); n != 0 {
			t.changes[n] = append(t.changes[n], rec)
		}
	case *tape.MCPOpen:
		t.taken = max(t.taken, k.Conversation)
		if n := tape.OriginOf(k); n != 0 {
			t.within[k.Conversation] = n
		}
		if k.Transport == mcp.Stdio {
			t.stdio++
			t.programs[strings.Clone(filepath.Base(k.Program))] = true
		}
	case *tape.MCPClose:
		if k.ExitCode != nil {
			t.ends[k.Conversation] = mcp.Ended{Exited: true, ExitCode: int(*k.ExitCode), Signal: strings.Clone(k.Signal)}
		}
	}
}

// openConversations makes what takes the conversations with MCP servers.
func (s *session) openConversations(o *sessionOptions) {
	// The secrets that a server is given become known: in its arguments, and in variables that its client has from a configuration and not
	// from its own environment.
	lo := mcp.LogOptions{Learn: func(o *mcp.Opened) {
		secrets.LearnArgs(s.scrub, o.Args)
		if o.Environ != nil {
			s.scrub.LearnEnv(o.Environ())
		}
	}}
	over := &mcp.OverHTTPOptions{}
	if t := o.recorded; t != nil {
		lo.Taken = t.taken
		over.Book, over.Reveal = t.book, t.reveal
	}
	s.mcp = mcp.NewLog(s.rec, s.scrub, s.mask, &lo)
	if s.redactor.mcp != nil {
		over.Log = s.mcp
		s.http = mcp.NewOverHTTP(over)
	}
}

// endConversations ends the conversations that are held over HTTP. The program's network is closed by then.
func (s *session) endConversations() {
	if s.http == nil {
		return
	}
	if err := s.http.End(); err != nil {
		s.fail(conversationFailed(err))
	}
}

// conversationFailed is err, which ended the recording of a conversation.
func conversationFailed(err error) error {
	return fmt.Errorf("a conversation with an MCP server: %w", err)
}

// errConversationsInJail refuses a replay outside the jail that could not answer for servers.
var errConversationsInJail = errors.New("its conversations with MCP servers over stdio are answered in the jail alone: leave out --proxy")

// A ToolServer is a recorded tool server that goes on by itself in a fork: one over stdio, whose program is started, or one over HTTP.
type ToolServer struct {
	Name    string   `json:"name"`
	Command []string `json:"command,omitempty"` // as it was recorded; nil over HTTP
	URL     string   `json:"url,omitempty"`     // likewise
	At      string   `json:"at,omitempty"`      // the upstream in the place of its host; "" for none
}

// running are the recorded tool servers of a fork that go on by themselves: told what the tape tells up to the point, and live past it. Its
// methods do what a nil one needs: nothing.
type running struct {
	servers []*ToolServer
	on      map[uint64]bool         // their conversations on the tape
	closed  map[uint64]*tape.Record // where these ended
	at      *exchange.Fork          // once the book is divided

	mu   sync.Mutex
	told []*mcptest.Result // guarded by mu: answers before the point that are others than on the tape
}

// runningOf finds the servers of names in a recording; nil for no names.
func runningOf(rec *recording.Recording, names []string) (*running, error) {
	if len(names) == 0 {
		return nil, nil
	}
	r := &running{on: make(map[uint64]bool), closed: make(map[uint64]*tape.Record)}
	var there []string
	for k, err := range rec.Records() {
		if err != nil {
			return nil, err
		}
		switch open := k.Kind.(type) {
		case *tape.MCPOpen:
			there = r.add(open, names, there)
		case *tape.MCPClose:
			kept := *k
			r.closed[open.Conversation] = &kept
		}
	}
	for _, name := range names {
		if !r.has(name) {
			if len(there) == 0 {
				return nil, fmt.Errorf("--mcp %s: the recording holds no conversation with a tool server", name)
			}
			return nil, fmt.Errorf("--mcp %s: there is no such tool server; there are %s", name, strings.Join(there, ", "))
		}
	}
	return r, nil
}

// add takes a conversation that the program itself held, where it is of one of names, and adds who it is with to those that are there.
func (r *running) add(open *tape.MCPOpen, names, there []string) []string {
	name := tape.MCPServer(open.Server)
	if tape.OriginOf(open) != 0 {
		return there
	}
	if !slices.Contains(there, name) {
		there = append(there, name)
	}
	if !slices.Contains(names, name) {
		return there
	}
	s := &ToolServer{Name: name, URL: open.URL}
	if open.Transport == mcp.Stdio {
		s.Command, r.on[open.Conversation] = append([]string{open.Program}, open.Args...), true
	}
	if !slices.ContainsFunc(r.servers, func(o *ToolServer) bool { return o.Name == name && o.URL == s.URL }) {
		r.servers = append(r.servers, s)
	}
	return there
}

// far is a server over HTTP; nil for none.
func (r *running) far() *ToolServer {
	if r == nil {
		return nil
	}
	for _, s := range r.servers {
		if s.Command == nil {
			return s
		}
	}
	return nil
}

// place says where the servers over HTTP are reached.
func (r *running) place(upstreams map[string]string) {
	if r == nil {
		return
	}
	for _, s := range r.servers {
		if u, err := url.Parse(s.URL); err == nil && s.Command == nil {
			s.At = network.UpstreamOf(upstreams, u)
		}
	}
}

// has reports whether a server of that name, or of the nth of that name, runs.
func (r *running) has(server string) bool {
	return r != nil && slices.ContainsFunc(r.servers, func(s *ToolServer) bool { return s.Name == tape.MCPServer(server) })
}

// holds reports whether a record of the tape is of what such a server itself asked, changed or started.
func (r *running) holds(asker uint64) bool { return r != nil && r.on[asker] }

// records reports whether a spawn is recorded and nothing else: that of a server past the point, and what such a server starts itself.
func (r *running) records(w *spawns, sp *jail.Spawn, o *mcp.Opened) bool {
	if r == nil {
		return false
	}
	return w.changing.servers.within(sp.PID) != 0 || r.at.Past() && r.has(w.recorded.book.Serves(o.Program, o.Args))
}

// ended reports whether the server of a conversation had ended by itself before the point.
func (r *running) ended(conversation uint64) bool {
	rec := r.closed[conversation]
	return rec != nil && rec.Kind.(*tape.MCPClose).By == string(mcp.Server) && r.at.Before(rec, true)
}

// takeOver has a recorded server's own program go on past the point.
func (w *spawns) takeOver(sp *jail.Spawn, st *jail.Streams, served *mcp.Served, by uint32) {
	opened := w.opened(sp, by)
	opened.Latest = func() string { return served.Recorded().Program } // its first try along PATH may be another
	ctx, stop := context.WithCancel(w.cut)
	end := make(chan jail.Ended, 1)
	go func() { end <- w.endOf(sp) }()
	c, err := w.takeOverOn(ctx, st, served, opened, by)
	stop()
	if err != nil {
		w.fail(err)
	}
	w.ended(c, serverEnd(<-end))
}

// takeOverOn talks until either side has ended, and closes what it was held on.
func (w *spawns) takeOverOn(ctx context.Context, st *jail.Streams, served *mcp.Served, opened *mcp.Opened, by uint32) (*mcp.Conversation, error) {
	leave := func() {
		leaveClient(&st.Far)
		closeAll(st.Near[:])
	}
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	c, _, own, err := w.settled(ctx, st, served, opened, by)
	if err != nil {
		return c, err
	}
	is := opened.Recorded
	o := &mcp.TakeOverOptions{
		ServeOptions: own, ServerIn: st.Near[0], ServerOut: st.Near[1], ServerErr: st.Near[2],
		Past: w.running.at.Past, Ends: w.running.ended(is.Conversation),
		Told: func(a *mcp.ToldAnswer) { w.running.tell(w.s.mcp, is, a) },
	}
	return c, served.TakeOver(ctx, o)
}

// tell keeps an answer that is another than on the tape.
func (r *running) tell(log *mcp.Log, is *mcp.Recorded, a *mcp.ToldAnswer) {
	res := mcptest.NewResult(tape.MCPServer(is.Server), is.Conversation, a.Seq, a.Asked)
	if a.Now == nil {
		res.Status, res.Why = mcptest.NoAnswer, a.Why
	} else {
		res.Compare(log, a.Recorded, a.Now)
	}
	if res.Status != mcptest.Same {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, res)
	}
}

// answers are those before the point that are others than on the tape.
func (r *running) answers() []*mcptest.Result {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}
