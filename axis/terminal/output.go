package terminal

import (
	"errors"
	"io"
	"syscall"
)

// Output reads what the program writes until nobody can write any more. Closing it closes Master.
//
// An EIO says that the last of the program's side is closed, and is believed when it comes twice: the kernel looks whether
// bytes have come, then whether the other side is closed, and between the two looks (where the reader is held up there) the
// last bytes may come and the side be closed. They are there for the next read.
func (p *PTY) Output() io.ReadCloser { return &output{master: p.Master} }

type output struct {
	master io.ReadCloser
	closed bool // EIO was the last that was said
}

func (o *output) Read(b []byte) (int, error) {
	for {
		n, err := o.master.Read(b)
		if n > 0 || o.closed || !errors.Is(err, syscall.EIO) {
			o.closed = false
			return n, err
		}
		o.closed = true
	}
}

func (o *output) Close() error { return o.master.Close() }
