// Package daemon answers the methods of spec/agent-daemon.md: it lets agents in, brackets their runs, decides what their
// proposed tool calls may do, calls their tools back, and keeps every turn of a run so that it outlives crashes.
//
// Goals: a turn is on the disk before the reply that answers its call; what one agent does, another neither sees nor slows; a
// client of the public CAR protocol works here for the methods that are here; everything that a client can make the daemon hold
// has a bound that is written down (Limits).
//
// Non-goals: proposals that run side by side, keeping tools, policies or state beyond a connection.
//
// # Vocabulary
//
// A session is one connection: who it is (identity), its tools, its policies in scopes, its state, the runs that it holds, its
// subscriptions. An intent is what waits for a person's decision, a supervisor the host's connection that is told of it. A run is
// held by the sessions that started it, or started it again by its key; when the last of them goes away its grace begins, and at the
// end of that the run is given up: it ends as incomplete. A submission is one proposal while it runs; it keeps the run, the policies
// and the tenant that were in force when it came.
//
// # Who may do what
//
// The comment of identity has the table. A run that is not there and one that is somebody else's are answered alike, to the byte,
// and about in the same time. No id is looked up, and nothing is built from it, before runtrace.CheckName has passed it.
//
// # Ordering
//
// session.auth, tools.*, policy.*, session.* and state.* are answered before the next frame is read; all others run side by side, and
// their replies come in any order. runs.start has set the session's current run before its reply. The verdict on an action is kept
// before anything of the action runs, and its turn before the next action begins. An event of runs.subscribe comes after the reply,
// and events of one run in the order of its file.
//
// # Durability
//
// A reply that acknowledges a turn, a start or an end is sent after store.Store has it on the disk. When the store fails, the
// request is answered with an error, /readyz with 503, and the service manager's watchdog is not fed any longer. A clean stop
// answers what it was asked, ends the runs that are open as incomplete, closes the store and removes the tokens; whatever a kill
// leaves undone of that, the next Open does.
//
// # Goroutines
//
// Each connection has those of its jsonrpc.Conn, and one for each subscription, which session.serve waits for. Timers of graces end
// with holds.flush. The door's goroutine is waited for by Shutdown, the watchdog's by Serve.
//
// # Where the public protocol leaves a choice
//
//   - server.handshake takes versions 1 to 3, which say the same about the methods here. Of capabilities it grants the two that
//     clients of version 3 insist on, for they are about methods that are not here; any other that is required is -32008.
//   - The cursor of runs.get_trace counts records and comes back as it was sent; "next" beside it is where to go on. That of
//     runs.subscribe and its events counts turns.
//   - A subscriber that reads too slowly gets runs.trace.lost, which names what it missed as runs.get_trace takes it; so does one of
//     a run whose turns so far are more than 32 MiB, of what the reply does not have.
//   - A policy session that is not open rejects every action, as there; policies and a tenant given together both hold.
//   - A tool call that failed is a turn without output; one that ran into its time is a drive_cli's cli_outcome "timeout".
//   - A proposal that carries "idempotent" runs once in its connection. A result for which there was no room is not kept, and then
//     the repetition is an error: it never runs twice.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/door"
	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// Daemon is one daemon: its listeners, its sessions, its runs.
type Daemon struct {
	o        Options
	log      *slog.Logger
	store    store.Store // set when opened is closed
	recovery atomic.Pointer[store.Progress]
	policies *policy.Set
	builtins map[string]*tool
	tokens   token.Pair
	kept     *token.Kept // nil without auth
	scratch  string      // of the index where there is no directory for it; "" for none
	door     *door.Door
	runs     *holds
	metrics  *metrics
	budget   *jsonrpc.Budget
	room     *quota // of all sessions
	follows  *quota // subscriptions of all sessions

	supervision *supervision

	notify notifier

	serving context.Context // of every conversation
	cut     context.CancelFunc
	opened  chan struct{} // closed when the store is open: d.store is set
	live    chan struct{} // closed by Serve: conversations begin
	shut    chan struct{} // closed when the door has ended; nil where none was opened
	doorErr error         // of the door; set before shut is closed
	stopped chan struct{} // closed when Shutdown is done
	once    sync.Once     // of Shutdown
	stopErr error         // of Shutdown; set before stopped is closed

	mu       sync.Mutex
	sessions map[*session]struct{}
	draining bool
	serves   bool
}

// Open checks the options, writes the tokens, listens, and opens the store, which after a crash recovers it and may take a while.
// From the moment it listens /healthz, /readyz and /metrics are answered, and clients may connect; what they ask is answered from
// Serve on. Shutdown must be called, or Serve.
func Open(ctx context.Context, o *Options) (*Daemon, error) {
	d, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := d.listen(ctx); err != nil {
		return nil, err
	}
	if err := d.openStore(ctx); err != nil {
		return nil, errors.Join(err, d.close(ctx))
	}
	return d, nil
}

// prepare makes a daemon that has neither a store nor a door.
func prepare(o *Options) (*Daemon, error) {
	d := &Daemon{
		o: o.filled(), sessions: make(map[*session]struct{}),
		opened: make(chan struct{}), live: make(chan struct{}), stopped: make(chan struct{}),
	}
	d.log, d.notify = d.o.Logger, newNotifier(os.Getenv)
	if err := d.o.check(); err != nil {
		return nil, err
	}
	var err error
	if d.policies, err = policy.Compile(d.o.Policies); err != nil {
		return nil, err
	}
	if d.builtins, err = newBuiltins(d.o.Builtins, d.o.NoAuth); err != nil {
		return nil, err
	}
	d.runs = newHolds(d.o.Grace, d.giveUp)
	d.budget = jsonrpc.NewBudget(d.o.Limits.Memory)
	d.room, d.follows = &quota{most: d.o.Limits.AllSessionBytes}, &quota{most: int64(d.o.Limits.AllSubscriptions)}
	d.supervision = newSupervision(d.o.DecideWithin, d.o.Limits.Intents)
	d.metrics = newMetrics(d)
	d.serving, d.cut = context.WithCancel(context.Background())
	return d, nil
}

// openStore opens what keeps the runs.
func (d *Daemon) openStore(ctx context.Context) error {
	dir, files, segment := d.o.Data, faultfs.OS, int64(0)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "tapedeck-daemon-"); err != nil {
			return err
		}
		d.scratch, files, segment = dir, faultfs.NewMemory(), 4<<20
	}
	kept, err := store.Open(ctx, dir, &store.Options{
		Logger: d.log, Committed: d.metrics.committed, FS: files, Segment: segment, Descriptors: min(4096, max(door.Descriptors()/4, 16)),
		Progress: func(p store.Progress) {
			d.recovery.Store(&p)
			if d.o.Progress != nil {
				d.o.Progress(p.Phase, p.Done, p.Total)
			}
		},
	})
	if err != nil {
		return err
	}
	d.store = kept
	if d.o.Spans != nil {
		d.store = &telling{kept, d.o.Spans}
	}
	close(d.opened)
	return nil
}

// listen opens the door, and lets clients in who wait there for Serve. The tokens are there before the first: who connects
// while the store is being opened has read them. The door's goroutine ends by d.cut, and Shutdown waits for it.
func (d *Daemon) listen(ctx context.Context) (err error) {
	d.door, err = door.Open(ctx, &door.Options{
		Listen: d.o.Listen, Socket: d.o.Socket, Converse: d.converse, HTTP: d.pages(),
		WebSocket:   websock.Options{Limit: d.o.Limits.FrameBytes, Budget: d.budget},
		Connections: d.o.Limits.Connections, Logger: d.log,
		Refused: func(why string) { d.metrics.refused.With(why).Inc() },
	})
	if err != nil {
		return err
	}
	if err := d.writeTokens(); err != nil {
		d.door.Stop()
		return err
	}
	d.shut = make(chan struct{})
	go func() {
		defer close(d.shut)
		d.doorErr = d.door.Serve(d.serving)
	}()
	return nil
}

// writeTokens puts the tokens where clients find them.
func (d *Daemon) writeTokens() (err error) {
	if d.o.NoAuth {
		return nil
	}
	d.tokens = token.New()
	if d.kept, err = token.Write(d.o.Tokens, d.tokens, d.addresses()...); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	return nil
}

// addresses are those under which clients look for the tokens.
func (d *Daemon) addresses() []string {
	var all []string
	if addr := d.door.Addr(); addr != "" {
		all = append(all, addr)
	}
	if d.o.Socket != "" {
		all = append(all, "unix:"+d.o.Socket)
	}
	return all
}

// URL is where clients reach it: ws://host:port, or unix:PATH when it listens on a socket alone.
func (d *Daemon) URL() string { return d.door.URL() }

// converse holds one conversation; the door starts it in a goroutine of its own and waits for it.
func (d *Daemon) converse(ctx context.Context, stream jsonrpc.Stream, p door.Peer) {
	select {
	case <-d.live:
	case <-ctx.Done():
		return
	}
	s := newSession(d, stream, d.log.With("peer", p.String()))
	if !d.enter(s) {
		_ = stream.Close(jsonrpc.CloseGoingAway, "shutting down")
		return
	}
	defer d.leave(s)
	s.log.Debug("connected")
	err := s.serve(ctx)
	s.log.Debug("disconnected", "why", err)
}

func (d *Daemon) enter(s *session) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return false
	}
	d.sessions[s] = struct{}{}
	d.metrics.connections.Add(1)
	return true
}

func (d *Daemon) leave(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, s)
	d.metrics.connections.Add(-1)
}

// Serve answers until ctx ends or Shutdown is called; the end of ctx is a Shutdown. It returns when all is over, with nil after
// a clean stop.
func (d *Daemon) Serve(ctx context.Context) error {
	d.mu.Lock()
	again := d.serves
	d.serves = true
	d.mu.Unlock()
	if again {
		return errors.New("serve: this daemon serves already, or has: open another")
	}
	end := context.AfterFunc(ctx, func() { _ = d.Shutdown(context.WithoutCancel(ctx)) })
	defer end()
	close(d.live)
	d.log.Info("listening", "url", d.URL())
	d.notify.tell("READY=1")
	var watched sync.WaitGroup
	watched.Go(func() { d.notify.watch(d.serving, func() bool { return d.store.Health() == nil }) })
	<-d.shut
	err := d.doorErr
	if err != nil {
		err = fmt.Errorf("serve: %w", err)
	}
	err = errors.Join(err, d.Shutdown(context.WithoutCancel(ctx)))
	watched.Wait()
	return err
}

// wireLimits are those of one connection.
func (d *Daemon) wireLimits() jsonrpc.Limits {
	l := &d.o.Limits
	return jsonrpc.Limits{Frame: l.FrameBytes, Concurrent: l.Requests, Queue: l.QueueBytes, WriteTimeout: l.WriteTimeout, Rate: l.Rate, Burst: l.Burst}
}

func (d *Daemon) meter() jsonrpc.Meter {
	return jsonrpc.Meter{
		Handled: d.metrics.handled,
		Refused: func(why jsonrpc.Refusal) { d.metrics.frames.With(string(why)).Inc() },
	}
}

// pages are what the listener answers besides the protocol.
func (d *Daemon) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := d.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.Handle("GET /metrics", &d.metrics.set)
	return mux
}

// ready says why a client should go elsewhere; nil is that it need not.
func (d *Daemon) ready() error {
	select {
	case <-d.opened:
	default:
		if p := d.recovery.Load(); p != nil {
			return fmt.Errorf("opening the store: %s, %d of %d", p.Phase, p.Done, p.Total)
		}
		return errors.New("opening the store")
	}
	d.mu.Lock()
	draining := d.draining
	d.mu.Unlock()
	if draining {
		return errors.New("shutting down")
	}
	if err := d.store.Health(); err != nil {
		return fmt.Errorf("the store takes no turns until the daemon is started again: %w", err)
	}
	return nil
}

// stats are those of the store; none before it is open.
func (d *Daemon) stats() store.Stats {
	select {
	case <-d.opened:
		return d.store.Stats()
	default:
		return store.Stats{}
	}
}

// Shutdown stops cleanly: no new requests, those in service finish within Options.Drain (and ctx), their replies are
// flushed, open runs end as incomplete, the store is closed, the tokens are removed. Whoever calls it again waits for the
// first to be done.
func (d *Daemon) Shutdown(ctx context.Context) error {
	d.once.Do(func() {
		d.stopErr = d.shutdown(ctx)
		close(d.stopped)
	})
	<-d.stopped
	return d.stopErr
}

func (d *Daemon) shutdown(ctx context.Context) error {
	d.notify.tell("STOPPING=1")
	d.log.Info("shutting down")
	d.mu.Lock()
	d.draining = true // who comes from now on is turned away
	d.mu.Unlock()
	d.door.Stop()
	d.supervision.close()
	d.finish(ctx)
	err := d.close(ctx)
	if err != nil {
		d.log.Error("stopped", "error", err)
	} else {
		d.log.Info("stopped")
	}
	return err
}

// close ends every conversation at once, ends their runs and closes the store.
func (d *Daemon) close(ctx context.Context) (err error) {
	d.cut()
	<-d.shut
	if d.store != nil {
		d.runs.flush()
		if err = d.store.Close(ctx); err != nil {
			err = fmt.Errorf("close the store: %w", err)
		}
	}
	if d.kept != nil {
		d.kept.Remove()
	}
	if d.scratch != "" {
		err = errors.Join(err, os.RemoveAll(d.scratch))
	}
	return err
}

// finish lets every connection answer what it was asked and closes it.
func (d *Daemon) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Drain)
	defer cancel()
	d.mu.Lock()
	var all sync.WaitGroup
	for s := range d.sessions {
		all.Go(func() {
			if err := s.conn.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
				s.log.Warn("requests were cut off", "error", err)
			}
		})
	}
	d.mu.Unlock()
	all.Wait()
}

// notifier tells the service manager how the daemon is (sd_notify(3)): READY=1, STOPPING=1, and WATCHDOG=1 as often as asked.
// Without NOTIFY_SOCKET it does nothing.
type notifier struct {
	socket   string
	watchdog time.Duration // the manager's patience; 0 is endless
}

func newNotifier(getenv func(string) string) notifier {
	n := notifier{socket: getenv("NOTIFY_SOCKET")}
	pid := getenv("WATCHDOG_PID")
	if pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return n
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// tell sends one state; a manager that cannot be reached is nobody's trouble here.
func (n notifier) tell(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", n.socket)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}

// watch sends WATCHDOG=1 at half the manager's patience until ctx ends, as long as the daemon is healthy: one that is not is
// restarted by its manager.
func (n notifier) watch(ctx context.Context, healthy func() bool) {
	if n.socket == "" || n.watchdog <= 0 {
		return
	}
	tick := time.NewTicker(n.watchdog / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if healthy() {
				n.tell("WATCHDOG=1")
			}
		}
	}
}
