package bench

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// settleTime is how long settle waits: a disk that others write to never comes to rest.
const settleTime = 10 * time.Second

// settle brings to the disk what has been written on the file system of dir: what a run then writes is its own.
func settle(dir string) {
	done := make(chan struct{})
	go func() { // it ends with the call, which nothing can end
		defer close(done)
		if f, err := os.Open(dir); err == nil {
			unix.Syncfs(int(f.Fd()))
			f.Close()
		}
	}()
	select {
	case <-done:
	case <-time.After(settleTime):
	}
}
