package daemon

import (
	"log/slog"
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
	// Data is the directory that keeps the runs; "" keeps them in memory, for tests.
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
	// Drain is how long Shutdown lets requests finish that are being served; 0 is DefaultDrain.
	Drain  time.Duration
	Limits Limits
	// Progress is told, where it is not nil, how far the rebuilding of the index is, in bytes of the log.
	Progress func(done, total int64)
	Logger   *slog.Logger // nil is silent
}

// Defaults of Options.
const (
	DefaultListen = "127.0.0.1:9100"
	DefaultGrace  = 2 * time.Second
	DefaultDrain  = 10 * time.Second
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
	StateBytes    int           // keys and values of its state: 16 MiB
	Subscriptions int           // runs that it watches: 64
	Runs          int           // open runs that it started: 256
	Requests      int           // requests served at a time: 64
	FrameBytes    int           // one frame: 16 MiB
	QueueBytes    int           // replies and events that wait for a slow reader: 32 MiB
	Rate          float64       // requests a second, on the average: 5000
	Burst         int           // requests at once: 10000
	ToolTimeout   time.Duration // one call of a tool whose action names no timeout_ms: 10 minutes
	Connections   int           // of the whole daemon: 4096
}
