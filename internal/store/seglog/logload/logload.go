// Package logload puts load on a segment log alone, and on a file for each session, so that a measurement of anything built on the
// log can say what part of it is the log's. It is for benchmarks.
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

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// A Load is a number of appenders at once, each of which appends its next record as soon as the last one is on the disk.
type Load struct {
	Appenders int
	Size      int             // bytes of each record
	Records   int             // all of them together; at least one each
	Log       *seglog.Options // of Run; nil: the defaults
}

// A Result is what a load came to.
type Result struct {
	Records int
	Elapsed time.Duration
	P99     time.Duration // from the append until it was acknowledged
	Blocks  []int         // bytes of each block that the log wrote; of Run alone
}

// PerSecond is how many records were acknowledged a second.
func (r *Result) PerSecond() float64 { return float64(r.Records) / r.Elapsed.Seconds() }

// Run puts a load on a log in dir, which must be empty or a log.
func Run(ctx context.Context, dir string, load Load) (*Result, error) {
	var blocks []int
	var o seglog.Options
	if load.Log != nil {
		o = *load.Log
	}
	o.Committed = func(b seglog.Batch) { blocks = append(blocks, b.Bytes) }
	log, err := seglog.Open(dir, &o)
	if err != nil {
		return nil, err
	}
	r, err := load.run(func(_ int, record []byte) error {
		done := make(chan error, 1)
		if err := log.Append(ctx, 0, record, func(_ seglog.Pos, err error) { done <- err }); err != nil {
			return err
		}
		return <-done
	})
	err = errors.Join(err, log.Close(ctx))
	r.Blocks = blocks
	return r, err
}

// Sessions puts a load on one file an appender in dir, each record with a sync of its own.
func Sessions(dir string, load Load) (*Result, error) {
	files := make([]*os.File, load.Appenders)
	for i := range files { // opening them is not what is measured
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files[i] = f
	}
	return load.run(func(appender int, record []byte) error {
		if _, err := files[appender].Write(record); err != nil {
			return err
		}
		return files[appender].Sync()
	})
}

// run has each appender write its records and measures how long each took.
func (load *Load) run(write func(appender int, record []byte) error) (*Result, error) {
	each := max(load.Records/load.Appenders, 1)
	took := make([][]time.Duration, load.Appenders)
	errs := make([]error, load.Appenders)
	record := slices.Repeat([]byte("r"), load.Size)
	var wg sync.WaitGroup
	began := time.Now()
	for a := range load.Appenders {
		wg.Go(func() {
			took[a] = make([]time.Duration, 0, each)
			for range each {
				from := time.Now()
				if errs[a] = write(a, record); errs[a] != nil {
					return
				}
				took[a] = append(took[a], time.Since(from))
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	r := &Result{Records: len(all), Elapsed: elapsed}
	if len(all) > 0 {
		r.P99 = all[len(all)*99/100]
	}
	return r, errors.Join(errs...)
}
