package jsonrpc

import (
	"io"
	"sync"
)

// Pipe returns the two ends of a stream in memory. A Write waits until the other end reads it.
func Pipe() (Stream, Stream) {
	ab, ba := make(chan []byte), make(chan []byte)
	shared := &pipeEnd{done: make(chan struct{})}
	return &pipe{in: ba, out: ab, end: shared}, &pipe{in: ab, out: ba, end: shared}
}

type pipe struct {
	in  <-chan []byte
	out chan<- []byte
	end *pipeEnd
}

type pipeEnd struct {
	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

func (p *pipe) Read() ([]byte, int64, error) {
	select {
	case b := <-p.in:
		return b, 0, nil
	case <-p.end.done:
		return nil, 0, p.end.err
	}
}

func (p *pipe) Write(frame []byte, _ bool) error {
	b := append([]byte(nil), frame...)
	select {
	case p.out <- b:
		return nil
	case <-p.end.done:
		return ErrClosed
	}
}

func (p *pipe) Short(bool) {} // it has no budget

func (p *pipe) Close(code int, reason string) error {
	p.end.once.Do(func() {
		p.end.err = io.EOF
		if code > CloseNormal {
			p.end.err = &CloseError{Code: code, Reason: reason}
		}
		close(p.end.done)
	})
	return nil
}
