package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

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
	served := d.drain()
	d.door.Stop()
	d.finish(ctx)
	d.cut()
	if served != nil {
		<-served
	}
	d.runs.flush()
	var err error
	if err = d.store.Close(ctx); err != nil {
		err = fmt.Errorf("close the store: %w", err)
	}
	if d.kept != nil {
		d.kept.Remove()
	}
	d.log.Info("stopped", "error", err)
	return err
}

// drain turns away who comes from now on, and says what is closed when the door has ended.
func (d *Daemon) drain() (served <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.draining = true
	return d.served
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
