package deck

import (
	"sync"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// A jobKeeper makes the program and us one job of the caller's shell: where one of the two is stopped, so is the other, and
// both go on together.
type jobKeeper struct {
	w     world
	con   *console // nil where the program has no terminal
	job   *terminal.Job
	asked bool // we were asked to stop, and have told the program to
	alone bool // a stop of the program is none of the caller's business: it is continued at once
}

// keepJob keeps the program's job until stop is called, which waits for its end. Nobody's signals are caught where the
// caller passes none and has no terminal.
func (r *run) keepJob(w world, st *streams) (stop func()) {
	k := &jobKeeper{w: w, con: st.con, job: new(terminal.Job)}
	caller := st.con != nil && st.con.host != nil
	k.alone = !caller || r.s.replay
	if caller || r.signals != nil {
		k.job = terminal.NewJob()
	}
	done := make(chan struct{})
	var keeping sync.WaitGroup
	keeping.Go(func() {
		defer k.job.Close()
		for {
			select {
			case <-done:
				return
			case <-k.job.Stops:
				k.ask()
			case sig := <-w.Stopped():
				k.stopped(sig)
			case <-k.job.Continued:
				if k.con != nil {
					k.con.settle()
				}
			}
		}
	})
	return func() { close(done); keeping.Wait() }
}

// ask has the program stop, as the terminal that asked us would have asked it. One without a terminal of its own cannot be
// asked, nor one that was not while recording.
func (k *jobKeeper) ask() {
	sig := sigTSTP
	if k.con == nil || k.alone || k.w.Stopped() == nil {
		sig = sigSTOP
	}
	k.asked = true
	k.w.Signal(sig)
	if k.w.Stopped() == nil { // this world does not tell
		k.suspend()
	}
}

// stopped does what the program's stop asks for.
func (k *jobKeeper) stopped(sig syscall.Signal) {
	switch {
	case k.asked:
		k.suspend()
	case k.con == nil: // its own business, as it is of a program that nobody records
	case (sig == sigTTIN || sig == sigTTOU) && k.con.want():
		k.w.Signal(sigCONT)
	case k.alone:
		k.w.Signal(sigCONT)
	default:
		k.suspend()
	}
}

func (k *jobKeeper) suspend() {
	k.asked = false
	k.con.pause()
	k.job.Suspend()
	k.con.resume()
	k.w.Signal(sigCONT)
}
