package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
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
