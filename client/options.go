package client

import (
	"log/slog"
	"time"
)

// Options of Dial. Nil and the zero value work: the token of a daemon on this machine, no agent, no tools.
type Options struct {
	// Token is sent as it is. "" reads TokenFile.
	Token string
	// TokenFile holds the token. "" is where the daemon of the URL keeps its own; one that is not there is no error, for a daemon
	// without authentication has none.
	TokenFile string
	// Host asks for the host's role: the token is the host's.
	Host bool
	// AgentID binds the connection to that agent. "" leaves it to each run.
	AgentID string

	// Tools are registered before Dial returns. RegisterTools adds to them.
	Tools []Tool

	// Patience is how long a call waits for a connection that was lost to be made again. 0 is 10 s; less than 0 makes none again:
	// what was lost stays lost.
	Patience time.Duration
	// MaxFrame is the longest message taken from the daemon, in bytes. 0 is 64 MiB, as the public protocol has it.
	MaxFrame int
	// Version names the program to the daemon. "" is that of this library.
	Version string
	// Logger is told of connections that are lost and made again, and of tools that panic. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultPatience = 10 * time.Second
	defaultMaxFrame = 64 << 20 // a reply of runs.get_trace has up to 32 MiB of records
)

// filled is o with its defaults.
func (o *Options) filled() Options {
	var f Options
	if o != nil {
		f = *o
	}
	if f.Patience == 0 {
		f.Patience = defaultPatience
	}
	if f.MaxFrame == 0 {
		f.MaxFrame = defaultMaxFrame
	}
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	return f
}
