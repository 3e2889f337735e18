package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

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
		Logger: d.log, Committed: d.metrics.committed, FS: files, Segment: segment,
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
	mux.Handle("GET /metrics", d.metrics.handler())
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
