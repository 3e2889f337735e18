//go:build load && linux

package load

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// appendWait appends a record and returns when it is on the disk.
func appendWait(l *seglog.Log, b []byte) error {
	acknowledged := make(chan error, 1)
	if err := l.Append(context.Background(), 0, b, func(_ seglog.Pos, err error) { acknowledged <- err }); err != nil {
		return err
	}
	return <-acknowledged
}

// record is what the log keeps of one call of size turns.
func record(size int) []byte {
	line := []byte(`{"record":"turn","index":0,` + turn("load")[1:] + "\n")
	b := make([]byte, 0, size*len(line)+64)
	for range size {
		b = append(b, line...)
	}
	return b
}

// logAlone returns how many turns a second the segment log takes by itself from as many callers as make its blocks as large
// as block calls, each waiting for its acknowledgement.
func logAlone(dir string, n, size int, block float64, long time.Duration) (float64, error) {
	l, err := seglog.Open(dir, nil)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	defer l.Close(context.Background())
	callers := min(n, max(1, int(block+.5)))
	b := record(size)
	var count atomic.Int64
	begun := time.Now()
	end := begun.Add(long)
	err = side(callers, callers, func(int) error {
		for time.Now().Before(end) {
			if err := appendWait(l, b); err != nil {
				return err
			}
			count.Add(int64(size))
		}
		return nil
	})
	return float64(count.Load()) / time.Since(begun).Seconds(), err
}
