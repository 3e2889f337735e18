package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/door"
	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// Daemon is one daemon: its listeners, its sessions, its runs.
type Daemon struct {
	o        Options
	log      *slog.Logger
	store    store.Store
	policies *policy.Set
	builtins map[string]*tool
	tokens   token.Pair
	kept     *token.Kept // nil without auth
	door     *door.Door
	runs     *holds
	metrics  *metrics
	budget   *jsonrpc.Budget
	notify   notifier

	serving context.Context // of every conversation
	cut     context.CancelFunc
	stopped chan struct{} // closed when Shutdown is done
	once    sync.Once     // of Shutdown
	stopErr error         // of Shutdown; set before stopped is closed

	mu       sync.Mutex
	sessions map[*session]struct{}
	draining bool
	served   chan struct{} // closed when the door lets nobody in any longer; nil before Serve
}

// Open checks the options, opens the store (and recovers it), writes the tokens and listens. Nothing is answered before
// Serve. Shutdown must be called, or Serve.
func Open(ctx context.Context, o *Options) (*Daemon, error) {
	d, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if d.store, err = openStore(&d.o); err != nil {
		return nil, err
	}
	if err := d.listen(ctx); err != nil {
		return nil, errors.Join(err, d.store.Close(ctx))
	}
	return d, nil
}

// prepare makes a daemon that has neither a store nor a door.
func prepare(o *Options) (*Daemon, error) {
	d := &Daemon{o: o.filled(), stopped: make(chan struct{}), sessions: make(map[*session]struct{})}
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
	d.metrics = newMetrics(d)
	d.serving, d.cut = context.WithCancel(context.Background())
	return d, nil
}

func openStore(o *Options) (store.Store, error) {
	if o.Data == "" {
		return store.NewMemory(), nil
	}
	return nil, errors.New("data directory: not yet")
}

// listen opens the door and puts the tokens where clients find them. The door lets nobody in before Serve.
func (d *Daemon) listen(ctx context.Context) (err error) {
	d.door, err = door.Open(ctx, &door.Options{
		Listen: d.o.Listen, Socket: d.o.Socket, Converse: d.converse, HTTP: d.pages(),
		WebSocket:   websock.Options{Limit: d.o.Limits.FrameBytes, Budget: d.budget},
		Connections: d.o.Limits.Connections, Logger: d.log,
		Refused: func(why string) { d.metrics.refused.WithLabelValues(why).Inc() },
	})
	if err != nil || d.o.NoAuth {
		return err
	}
	d.tokens = token.New()
	if d.kept, err = token.Write(d.o.Tokens, d.tokens, d.addresses()...); err != nil {
		d.door.Stop()
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
	d.metrics.connections.Inc()
	return true
}

func (d *Daemon) leave(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, s)
	d.metrics.connections.Dec()
}

// Serve answers until ctx ends or Shutdown is called; the end of ctx is a Shutdown. It returns when all is over, with nil after
// a clean stop.
func (d *Daemon) Serve(ctx context.Context) error {
	d.mu.Lock()
	if d.served != nil || d.draining {
		d.mu.Unlock()
		return errors.New("serve: this daemon has served already: open another")
	}
	d.served = make(chan struct{})
	d.mu.Unlock()
	end := context.AfterFunc(ctx, func() { _ = d.Shutdown(context.WithoutCancel(ctx)) })
	defer end()
	d.log.Info("listening", "url", d.URL())
	d.notify.tell("READY=1")
	var watched sync.WaitGroup
	watched.Go(func() { d.notify.watch(d.serving, func() bool { return d.store.Health() == nil }) })
	err := d.door.Serve(d.serving)
	close(d.served)
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
	return jsonrpc.Limits{Frame: l.FrameBytes, Concurrent: l.Requests, Queue: l.QueueBytes, Rate: l.Rate, Burst: l.Burst}
}

func (d *Daemon) meter() jsonrpc.Meter {
	return jsonrpc.Meter{
		Handled: d.handled,
		Refused: func(why jsonrpc.Refusal) { d.metrics.frames.WithLabelValues(string(why)).Inc() },
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
