// Package logload puts load on a segment log alone, on a file for each session, and on a bare file, so that a measurement of
// anything built on the log can say what part of it is the log's and what the disk's. It is for benchmarks and load tests.
package logload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// A Load says who appends what, and when. Either Appenders, Arrivals or Batches.
type Load struct {
	// Appenders append at once, each its next record as soon as the last one is on the disk: as fast as it goes.
	Appenders int
	Size      int // bytes of each of their records
	Records   int // all of them together; at least one each
	// Arrivals come when they come, whether or not earlier ones are on the disk, in the order of At.
	Arrivals []Arrival
	// Batches are blocks that another log wrote, as its Options.Committed saw them: the log gets as many records of such a size
	// for each of its own blocks, while the one before is on its way. For Run alone.
	Batches []seglog.Batch
	Log     *seglog.Options // of Run; nil: the defaults
}

// An Arrival is a record that comes at a time.
type Arrival struct {
	At      time.Duration // since the begin
	Size    int           // bytes
	Session int           // of Sessions: whose file
}

// Every returns n arrivals of size bytes, a second apart perSecond, of as many sessions in turn.
func Every(n, perSecond, size, sessions int) []Arrival {
	arrivals := make([]Arrival, n)
	for i := range arrivals {
		arrivals[i] = Arrival{time.Duration(i) * time.Second / time.Duration(perSecond), size, i % sessions}
	}
	return arrivals
}

// A Result is what a load came to.
type Result struct {
	Records  int
	Bytes    int // of records
	Elapsed  time.Duration
	P50, P99 time.Duration // from the append, or the arrival's time, until it was acknowledged
	Max      time.Duration
	Blocks   []int // bytes of each block that the log wrote; of Run alone
}

// PerSecond is how many records were acknowledged a second.
func (r *Result) PerSecond() float64 { return float64(r.Records) / r.Elapsed.Seconds() }

func (r *Result) String() string {
	return fmt.Sprintf("%d records of %d bytes in %s: %.0f a second, p50 %s, p99 %s, max %s, %d blocks",
		r.Records, r.Bytes/max(r.Records, 1), r.Elapsed.Round(time.Millisecond), r.PerSecond(), r.P50, r.P99, r.Max, len(r.Blocks))
}

// An appender brings a record of a session to the disk and then calls done, once.
type appender func(session int, record []byte, done func(error))

// Run puts a load on a log in dir, which must be empty or a log.
func Run(ctx context.Context, dir string, load Load) (*Result, error) {
	var blocks []int
	var o seglog.Options
	if load.Log != nil {
		o = *load.Log
	}
	committed := o.Committed
	o.Committed = func(b seglog.Batch) {
		blocks = append(blocks, b.Bytes)
		if committed != nil {
			committed(b)
		}
	}
	if load.Batches != nil {
		r, err := replay(ctx, dir, load.Batches, o)
		if len(blocks) > 0 {
			r.Blocks = blocks[1:] // without the one that sets it going
		}
		return r, err
	}
	log, err := seglog.Open(dir, &o)
	if err != nil {
		return nil, err
	}
	r, err := load.run(ctx, func(_ int, record []byte, done func(error)) {
		if err := log.Append(ctx, 0, record, func(_ seglog.Pos, err error) { done(err) }); err != nil {
			done(err)
		}
	})
	if closed := log.Close(ctx); err == nil {
		err = closed
	}
	r.Blocks = blocks
	return r, err
}

// Sessions puts a load on one file a session in dir, each record with a sync of its own.
func Sessions(ctx context.Context, dir string, load Load) (*Result, error) {
	var mu sync.Mutex
	type file struct {
		sync.Mutex
		faultfs.File
	}
	files := map[int]*file{}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	get := func(session int) (*file, error) {
		mu.Lock()
		defer mu.Unlock()
		if f := files[session]; f != nil {
			return f, nil
		}
		f, err := faultfs.OS.OpenFile(filepath.Join(dir, fmt.Sprint(session)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		files[session] = &file{File: f}
		return files[session], nil
	}
	for _, session := range load.sessions() { // opening them is not what is measured
		if _, err := get(session); err != nil {
			return nil, err
		}
	}
	write := func(session int, record []byte) error {
		f, err := get(session)
		if err != nil {
			return err
		}
		f.Lock()
		defer f.Unlock()
		if _, err := f.Write(record); err != nil {
			return err
		}
		return f.Sync()
	}
	return load.run(ctx, func(session int, record []byte, done func(error)) {
		if load.Arrivals == nil {
			done(write(session, record))
			return
		}
		go func() { done(write(session, record)) }()
	})
}

// Bare writes blocks of the given lengths one after another to a file in dir, each with its own sync, and returns how long
// that took: what the disk takes when nobody thinks.
func Bare(dir string, blocks []int) (time.Duration, error) {
	f, err := faultfs.OS.OpenFile(filepath.Join(dir, "bare"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Allocate(int64(sum(blocks))); err != nil && !errors.Is(err, faultfs.ErrUnsupported) {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	b := text(slices.Max(blocks))
	began, at := time.Now(), int64(0)
	for _, n := range blocks {
		if _, err := f.WriteAt(b[:n], at); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		at += int64(n)
	}
	return time.Since(began), nil
}

func sum(all []int) (n int) {
	for _, a := range all {
		n += a
	}
	return n
}

// text returns n bytes that are not zero.
func text(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}

func (load *Load) sessions() []int {
	var all []int
	for i := range load.Appenders {
		all = append(all, i)
	}
	for _, a := range load.Arrivals {
		all = append(all, a.Session)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (load *Load) run(ctx context.Context, do appender) (*Result, error) {
	if load.Arrivals != nil {
		return arrive(ctx, load.Arrivals, do)
	}
	return load.hurry(ctx, do)
}

// hurry is Load.Appenders.
func (load *Load) hurry(ctx context.Context, do appender) (*Result, error) {
	each := max(load.Records/load.Appenders, 1)
	took := make([][]time.Duration, load.Appenders)
	errs := make([]error, load.Appenders)
	record := text(load.Size)
	var wg sync.WaitGroup
	began := time.Now()
	for a := range load.Appenders {
		wg.Go(func() {
			took[a] = make([]time.Duration, 0, each)
			answer := make(chan error, 1)
			done := func(err error) { answer <- err }
			for range each {
				from := time.Now()
				do(a, record, done)
				if errs[a] = <-answer; errs[a] != nil || ctx.Err() != nil {
					return
				}
				took[a] = append(took[a], time.Since(from))
			}
		})
	}
	wg.Wait()
	return newResult(slices.Concat(took...), load.Size*each*load.Appenders, time.Since(began)), errors.Join(errs...)
}

// arrive is Load.Arrivals.
func arrive(ctx context.Context, arrivals []Arrival, do appender) (*Result, error) {
	took := make([]time.Duration, len(arrivals))
	record := text(slices.MaxFunc(arrivals, func(a, b Arrival) int { return a.Size - b.Size }).Size)
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	bytes, n := 0, 0
	began := time.Now()
	for i, a := range arrivals {
		if wait := a.At - time.Since(began); wait > 0 {
			time.Sleep(wait)
		}
		if ctx.Err() != nil {
			break
		}
		wg.Add(1)
		bytes, n = bytes+a.Size, n+1
		do(a.Session, record[:a.Size], func(err error) {
			took[i] = time.Since(began) - a.At
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
			wg.Done()
		})
	}
	wg.Wait()
	return newResult(took[:n], bytes, time.Since(began)), errors.Join(failed, ctx.Err())
}

func newResult(took []time.Duration, bytes int, elapsed time.Duration) *Result {
	r := &Result{Records: len(took), Bytes: bytes, Elapsed: elapsed}
	if len(took) == 0 {
		return r
	}
	slices.Sort(took)
	r.P50, r.P99, r.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	return r
}
