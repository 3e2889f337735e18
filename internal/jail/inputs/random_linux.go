package inputs

import (
	"io"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// maxFill is how many bytes one getrandom is given at most. Whoever wants more asks again, as it does after a signal.
const maxFill = 64 << 10

func (in *Answerer) random(c *notify.Call, p *process.Asker) {
	const known = unix.GRND_NONBLOCK | unix.GRND_RANDOM | unix.GRND_INSECURE
	if flags := c.Args[2]; flags&^known != 0 || flags&unix.GRND_RANDOM != 0 && flags&unix.GRND_INSECURE != 0 {
		c.Fail(unix.EINVAL)
		return
	}
	b := in.buf[:min(c.Args[1], maxFill)]
	if len(b) > 0 {
		p.Source.Fill(in.place(c, p), b)
		if inspect.WriteMemory(c.Task, c.Args[0], b) != nil {
			c.Fail(unix.EFAULT)
			return
		}
	}
	c.Return(int64(len(b)))
}

// open gives whoever opens a random device a pipe of its own that the recorder fills.
func (in *Answerer) open(c *notify.Call, path uint64, flags uint32) {
	text, err := in.text.Path(c.Task, path)
	if err == nil {
		in.to.Reads(text)
	}
	if err == nil && in.procOpened(c, text, flags) {
		return
	}
	if err != nil || text != "/dev/urandom" && text != "/dev/random" {
		c.GoOn()
		return
	}
	p := in.of(c.Task)
	var ends [2]int
	if p == nil || unix.Pipe2(ends[:], unix.O_CLOEXEC) != nil {
		c.GoOn()
		return
	}
	defer unix.Close(ends[0])
	if flags&unix.O_NONBLOCK != 0 {
		unix.SetNonblock(ends[0], true)
	}
	unix.SetNonblock(ends[1], true)
	to := os.NewFile(uintptr(ends[1]), "random")
	from := filler{p.Source.Opened()}
	_, _ = to.Write(from.piece()) // who does not block has something
	if err := c.ReturnFD(ends[0], int(flags&unix.O_CLOEXEC)); err != nil {
		to.Close()
		c.GoOn() // before Linux 5.14; a caller that is gone does not mind
		return
	}
	go func() { // ends with its last reader, at the latest with the jail
		defer to.Close()
		_, _ = io.Copy(to, from)
	}()
}

// filler reads random bytes.
type filler struct{ process.Filler }

func (f filler) piece() []byte {
	b := make([]byte, inspect.PageSize)
	f.Fill(b)
	return b
}

// Read implements io.Reader.
func (f filler) Read(b []byte) (int, error) {
	f.Fill(b)
	return len(b), nil
}
