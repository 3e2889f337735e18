package logload

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// A replayer is Load.Batches. A goroutine fills the next block while one is being written, and the committer waits for it
// before it takes that: each block is one batch, and filling it goes on beside the disk, as it does for many appenders.
type replayer struct {
	log     *seglog.Log
	armed   bool          // set before the first append
	writing chan struct{} // a block is being written
	filled  chan struct{} // the next one is complete
	done    chan struct{} // closed with the last answer
	took    []time.Duration
	left    int // answers
	bytes   int

	once   sync.Once
	broken chan struct{} // closed when failed is set: nobody waits any longer
	failed error
}

// blockFrame is what a block takes besides its records, in bytes.
const blockFrame = 33

// size is how long each record of a batch is.
func size(b seglog.Batch) int {
	each := max((b.Bytes-blockFrame)/b.Records, 1)
	return each - len(binary.AppendUvarint(nil, uint64(each)))
}

func replay(ctx context.Context, dir string, batches []seglog.Batch, o seglog.Options) (*Result, error) {
	p := &replayer{writing: make(chan struct{}), filled: make(chan struct{}), done: make(chan struct{}), broken: make(chan struct{})}
	for _, b := range batches {
		p.left += b.Records
		o.MaxBlock = max(o.MaxBlock, b.Bytes+b.Records*32) // what the log counts, and more
	}
	p.instrument(&o)
	log, err := seglog.Open(dir, &o)
	if err != nil {
		return &Result{}, err
	}
	p.log, p.armed = log, true
	defer context.AfterFunc(ctx, func() { p.fail(context.Cause(ctx)) })()
	began := time.Now()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		p.feed(ctx, batches)
	}()
	if _, err := log.AppendWait(ctx, []byte("begin")); err != nil {
		p.fail(err)
	}
	select {
	case <-p.done:
	case <-p.broken:
		err = p.failed
	}
	elapsed := time.Since(began)
	<-fed
	err = errors.Join(err, log.Close(context.WithoutCancel(ctx))) // then nobody writes to took
	return newResult(p.took, p.bytes, elapsed), err
}

// instrument has the committer tell when it begins to write a block, and wait for the next one before it goes on.
func (p *replayer) instrument(o *seglog.Options) {
	hook := &faultfs.Hook{Inner: o.FS, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpWrite && filepath.Ext(c.Name) == ".seg" && p.armed {
			p.send(p.writing)
		}
		return nil
	}}
	if hook.Inner == nil {
		hook.Inner = faultfs.OS
	}
	o.FS = hook
	committed := o.Committed
	o.Committed = func(b seglog.Batch) {
		committed(b)
		p.receive(p.filled)
	}
}

func (p *replayer) fail(err error) {
	p.once.Do(func() {
		p.failed = err
		close(p.broken)
	})
}

// send and receive say whether to go on.
func (p *replayer) send(to chan<- struct{}) bool {
	select {
	case to <- struct{}{}:
		return true
	case <-p.broken:
		return false
	}
}

func (p *replayer) receive(from <-chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-p.broken:
		return false
	}
}

// feed fills one block after another.
func (p *replayer) feed(ctx context.Context, batches []seglog.Batch) {
	record := text(size(slices.MaxFunc(batches, func(a, b seglog.Batch) int { return size(a) - size(b) })))
	for _, b := range batches {
		if !p.receive(p.writing) {
			return
		}
		n := size(b)
		for range b.Records {
			p.bytes += n
			from := time.Now()
			err := p.log.Append(ctx, 0, record[:n], func(_ seglog.Pos, err error) { p.answered(from, err) })
			if err != nil {
				p.fail(err)
				return
			}
		}
		if !p.send(p.filled) {
			return
		}
	}
	p.receive(p.writing)
	close(p.filled)
}

// answered is called by the committer.
func (p *replayer) answered(from time.Time, err error) {
	p.took = append(p.took, time.Since(from))
	if err != nil {
		p.fail(err)
	}
	if p.left--; p.left == 0 {
		close(p.done)
	}
}
