package daemon

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// Options say where a daemon listens, what it keeps and what it allows. Nil and the zero value listen on DefaultListen, ask
// for a token, and keep runs in memory alone.
type Options struct {
	// Listen is the TCP address, host:port; port 0 takes a free one. "" is DefaultListen, unless Socket is set: then no TCP.
	Listen string
	// Socket is the path of a Unix socket, which speaks the same; "" is none.
	Socket string
	// Data is the directory that keeps the runs; "" keeps them in memory, and their index in a temporary one until
	// Shutdown, for tests.
	Data string
	// Tokens is the directory in which the tokens' files are put; "" is the XDG runtime (else config) directory.
	Tokens string
	// NoAuth lets everyone in who reaches the address. Refused on any address but loopback, and together with Builtins.
	NoAuth bool
	// Policies are in force for every proposal of every connection, before its own, and answer policy.check.
	Policies []policy.Rule
	// Builtins turns on tools that the daemon itself runs.
	Builtins []Builtin
	// Grace is how long a run stays open whose connection went away; 0 is DefaultGrace, less than 0 is none.
	Grace time.Duration
	// DecideWithin is how long something waits for a person's decision before it is denied; 0 is DefaultDecideWithin.
	DecideWithin time.Duration
	// Drain is how long Shutdown lets requests finish that are being served; 0 is DefaultDrain.
	Drain  time.Duration
	Limits Limits
	// Progress is told, where it is not nil, how far Open has come with a store that takes a while: what it does, in words,
	// and how much of it is done.
	Progress func(phase string, done, total uint64)
	// Spans is told the runs while they go on, for who looks at traces elsewhere; nil is none.
	Spans  Spans
	Logger *slog.Logger // nil is silent
}

// Defaults of Options.
const (
	DefaultListen = "127.0.0.1:9100"
	DefaultGrace  = 2 * time.Second
	DefaultDrain  = 10 * time.Second

	DefaultDecideWithin = 30 * time.Second
)

// Builtin is one tool that the daemon runs itself: drive_cli or check_outcome.
type Builtin struct {
	Name string
	// Commands are the programs that it may start: a name that is looked up on PATH at Open, or an absolute path.
	Commands []string
}

// Limits bound what one connection may hold of the daemon. 0 takes the default that stands beside each.
type Limits struct {
	Tools         int           // registered tools: 1024
	Policies      int           // policies of all its scopes together: 1024
	Scopes        int           // open scopes of session.policy.open: 256
	SessionBytes  int           // tools, policies, state, kept results and those of proposals that run, together: 32 MiB
	Subscriptions int           // runs that it follows: 64
	Agents        int           // agents under which it starts runs: 256
	Runs          int           // open runs that it started: 256
	Requests      int           // requests served at a time: 64
	FrameBytes    int           // one frame: 16 MiB
	QueueBytes    int           // replies and events that wait for a slow reader: 4 MiB, and one frame of any length
	WriteTimeout  time.Duration // for which a reader may take no byte of a frame, before it is dropped: 10 s
	Rate          float64       // requests a second, on the average: 500, many times what an agent asks for; 16 KiB count as one, and 16 turns, a read of runs as four; less than 0 is no bound
	Burst         int           // requests at once, once that many were left of Rate: 500
	ToolTimeout   time.Duration // one call of a tool whose action names no timeout_ms: 5 minutes
	// Of the whole daemon:
	Connections      int   // 4096
	Memory           int64 // bytes of frames in flight, in and out: 256 MiB
	AllSessionBytes  int64 // of SessionBytes: 1 GiB
	Intents          int   // that wait for a person's decision: 4096
	AllSubscriptions int   // 4096, each of which may keep 128 KiB, and a record of any length, for a slow reader
}

func (l *Limits) fill() {
	l.Tools = cmp.Or(l.Tools, 1024)
	l.Policies = cmp.Or(l.Policies, policy.MaxRules)
	l.Scopes = cmp.Or(l.Scopes, 256)
	l.SessionBytes = cmp.Or(l.SessionBytes, 32<<20)
	l.Agents = cmp.Or(l.Agents, 256)
	l.Subscriptions = cmp.Or(l.Subscriptions, 64)
	l.Runs = cmp.Or(l.Runs, 256)
	l.Requests = cmp.Or(l.Requests, 64)
	l.WriteTimeout = cmp.Or(l.WriteTimeout, 10*time.Second)
	l.FrameBytes = cmp.Or(l.FrameBytes, 16<<20)
	l.QueueBytes = cmp.Or(l.QueueBytes, 4<<20)
	l.Rate = max(0, cmp.Or(l.Rate, 500))
	l.Burst = cmp.Or(l.Burst, 500)
	l.ToolTimeout = cmp.Or(l.ToolTimeout, 5*time.Minute)
	l.Connections = cmp.Or(l.Connections, 4096)
	l.Memory = cmp.Or(l.Memory, 256<<20)
	l.AllSessionBytes = cmp.Or(l.AllSessionBytes, 1<<30)
	l.Intents = cmp.Or(l.Intents, 4096)
	l.AllSubscriptions = cmp.Or(l.AllSubscriptions, 4096)
}

// filled is a copy with every default in its place.
func (o *Options) filled() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Listen == "" && out.Socket == "" {
		out.Listen = DefaultListen
	}
	out.Grace = max(0, cmp.Or(out.Grace, DefaultGrace))
	out.Drain = cmp.Or(out.Drain, DefaultDrain)
	out.DecideWithin = cmp.Or(out.DecideWithin, DefaultDecideWithin)
	out.Limits.fill()
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out
}

// check refuses what would let in whom nobody meant to let in.
func (o *Options) check() error {
	if !o.NoAuth || o.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %q: want host:port: %w", o.Listen, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("no-auth lets in everybody who reaches %s, so it is for loopback alone: listen on 127.0.0.1, or keep the tokens", o.Listen)
	}
	return nil
}
