package daemon

import "context"

// Daemon is one daemon: its listeners, its sessions, its runs.
type Daemon struct{}

// Open checks the options, opens the store (and recovers it), writes the tokens and listens. Nothing is answered before
// Serve.
func Open(ctx context.Context, o *Options) (*Daemon, error) { panic("not yet") }

// URL is where clients reach it: ws://host:port, or unix:PATH when it listens on a socket alone.
func (d *Daemon) URL() string { panic("not yet") }

// Serve answers until ctx ends or Shutdown is called; the end of ctx is a Shutdown. It returns nil after a clean stop.
func (d *Daemon) Serve(ctx context.Context) error { panic("not yet") }

// Shutdown stops cleanly: no new requests, those in service finish within Options.Drain (and ctx), their replies are
// flushed, open runs end as incomplete, the store is closed, the tokens are removed.
func (d *Daemon) Shutdown(ctx context.Context) error { panic("not yet") }
