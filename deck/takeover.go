package deck

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/mcptest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
			return nil, noToolServer(name, there)
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

// noToolServer says of a name that it is none.
func noToolServer(name string, there []string) error {
	if len(there) == 0 {
		return fmt.Errorf("--mcp %s: the recording holds no conversation with a tool server", name)
	}
	return fmt.Errorf("--mcp %s: there is no such tool server; there are %s", name, strings.Join(there, ", "))
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
