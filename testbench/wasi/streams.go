package wasi

import (
	"context"
	"fmt"
	"io"
)

// random is the module's source of random bytes.
type random struct{ r *run }

func (s random) Read(p []byte) (int, error) {
	s.r.happened()
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.r.b.Random().Read(p)
	if err != nil {
		s.r.abort(err)
	}
	return n, nil
}

// printer is where the module prints to. Nil discards.
type printer struct {
	r *run
	w io.Writer
}

func (p printer) Write(b []byte) (int, error) {
	if p.r.printed += int64(len(b)); p.r.printed > p.r.o.Output {
		p.r.abort(&LimitError{Limit: "output", What: fmt.Sprintf("the module printed more than %d bytes; Options.Output allows it more", p.r.o.Output)})
	}
	if p.w == nil {
		return len(b), nil
	}
	return p.w.Write(b)
}

// maxStdin is how much standard input there may be.
const maxStdin = 64 << 20

// stdin is the module's standard input.
type stdin struct{ r *run }

func (s stdin) Read(p []byte) (int, error) {
	s.r.happened()
	s.r.once.Do(s.r.readStdin)
	n := copy(p, s.r.stdin)
	s.r.stdin = s.r.stdin[n:]
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *run) readStdin() {
	b, err := r.b.Input("/dev/stdin", r.allOfStdin)
	if r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	if err != nil {
		r.abort(fmt.Errorf("standard input: %w", err))
	}
	r.stdin = b
}

// allOfStdin reads standard input to its end. It may never come: then the run's limit ends the wait, and what reads is left behind until
// its reader returns.
func (r *run) allOfStdin() ([]byte, error) {
	if r.o.Stdin == nil {
		return nil, nil
	}
	type whole struct {
		b   []byte
		err error
	}
	done := make(chan whole, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(r.o.Stdin, maxStdin+1))
		done <- whole{b, err}
	}()
	select {
	case all := <-done:
		if all.err == nil && len(all.b) > maxStdin {
			all.err = fmt.Errorf("want at most %d MiB", maxStdin>>20)
		}
		return all.b, all.err
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}
