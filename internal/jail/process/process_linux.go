package process

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/unwind"
	"golang.org/x/sys/unix"
)

// A Process is one process inside, as long as it lives.
type Process struct {
	PID int // as the recorder's PID namespace knows it

	fd   int
	file *os.File // of fd; closed when the process has ended and all have been told
	left bool     // it lived when all was killed
	end  *Ended   // nil: it has not ended yet
	told []func(Ended)

	Life
}

// A Life is a process since an execve, or since its fork.
type Life struct {
	Asker   *Asker // nil: it has asked for nothing yet
	Forker  Source // of the process that forked it; nil once it has executed something
	Sharing Sharing
	Code    *unwind.Space    // what it has mapped; nil before that is asked for
	Names   *unwind.Names    // of a program of Go, those of its functions; known with Code
	Others  []*Asker         // of its threads that have sources of their own
	Nth     uint64           // of the threads of who forked it, as Program has it
	Made    map[uint64]*Made // its threads but the first, by where in its memory each has its number
	first   Made             // its first thread
	Rest    *Asker           // of others, the one of all threads but the first; nil for none yet
	threads []int            // in the table
}

// A Made is a thread that another one made.
type Made struct {
	nth   uint64 // as Program has it
	makes uint64 // how many it has made itself
}

// Used is how long an Asker was told that it had a processor, in ns: by the clock, and by getrusage it and its children. That never goes back.
type Used struct {
	sync.Mutex
	Clock          int64
	Self, Children Usage
}

// A Usage is how long that was in a program's own code, and in the kernel's for it.
type Usage struct{ User, System int64 }

// An Asker is who asks as one: a process, or some of its threads.
type Asker struct {
	Process *Process
	Source  Source
	Output  string // the pipe that it began to write to, "" for none: what closes its output before it ends wrote to it
	Ticks   bool   // its monotonic clock is answered
	Over    bool   // it was told of that it has ended

	Used        Used
	LeapSeconds *int64 // by how many CLOCK_TAI is ahead for it; nil before it asks for the first time
}

// Sharing says which threads of a process have one source, so that what runs side by side does not take the times of each other.
type Sharing int

// How threads share.
const (
	OtherThreads Sharing = iota // all but the first one, which keeps to its work: an event loop, main
	NoThreads                   // each has its own: work stays in the thread that it began in
	AllThreads                  // one for all: the first moves between threads as any other work does
)

// A Thread is what is known of a thread, and what is being done with its call.
type Thread struct {
	Asker    *Asker // nil: it has asked for nothing yet
	Followed bool   // its execve is being followed
	Shifted  Timeout
	Stub     int // the descriptor of the stub that it is to execute, and one; 0 for none
}

// A Timeout is that with which a thread is to make its call again, and the kernel may as often as it restarts it: where it lies, 0 for
// none, its bytes, and which call that is.
type Timeout struct {
	At uint64
	Is string
	Nr int32
	IP uint64
}

// Use lends the descriptor of the process. The error is os.ErrClosed when it has ended.
func (p *Process) Use(use func(pidfd int) error) error { return WithFD(p.file, use) }

// Signal sends sig to the process. The error is os.ErrProcessDone when it is gone.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.Use(func(fd int) error { return unix.PidfdSendSignal(fd, sig, nil, 0) })
	if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrClosed) {
		return os.ErrProcessDone
	}
	return err
}

// WithFD lends f's descriptor as it is: File.Fd may change how it blocks.
func WithFD(f *os.File, use func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = c.Control(func(fd uintptr) { inner = use(int(fd)) })
	return errors.Join(err, inner)
}

// Held reports whether the process is in a table, which tells when it ends.
func (p *Process) Held() bool { return p.file != nil }
