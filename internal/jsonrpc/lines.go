package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// NewLines makes a stream of JSON texts, one a line, of a connection. A line is at most limit bytes (0: DefaultFrame); one above
// DefaultAllowance takes what it may need from budget (nil: no bound), which it waits for, and must be whole within LongFrame
// of its beginning. Empty lines are skipped. Close codes are not sent: the connection just ends.
func NewLines(conn io.ReadWriteCloser, limit int, budget *Budget) Stream {
	if limit == 0 {
		limit = DefaultFrame
	}
	l := &lines{conn: conn, limit: limit, budget: budget}
	l.open, l.end = context.WithCancel(context.Background())
	return l
}

// LongFrame is how long a frame above DefaultAllowance may take to come in, the wait for memory included.
const LongFrame = 30 * time.Second

type lines struct {
	conn   io.ReadWriteCloser
	limit  int
	budget *Budget
	short  bool

	in  []byte // what was read and is not yet given
	out []byte // frames that wait for the one behind them

	once sync.Once
	open context.Context // done once it is closed
	end  func()
}

// lineRead is how many bytes are asked for at first.
const lineRead = 4 << 10

func (l *lines) Read() ([]byte, int64, error) {
	for {
		line, held, err := l.line()
		if err != nil {
			l.budget.Give(held)
			return nil, 0, err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return line, held, nil
		}
		l.budget.Give(held)
	}
}

// line returns the bytes before the next newline, in memory of their own.
func (l *lines) line() (line []byte, held int64, err error) {
	var slow *time.Timer
	for seen := 0; ; {
		if k := bytes.IndexByte(l.in[seen:], '\n'); k >= 0 {
			return l.cut(seen+k, held, slow)
		}
		seen = len(l.in)
		if seen > l.limit {
			return nil, held, fmt.Errorf("%w of %d bytes: a line has none within it", ErrTooLong, l.limit)
		}
		if seen >= DefaultAllowance && l.short {
			return nil, 0, ErrShort
		}
		if seen >= DefaultAllowance && slow == nil {
			slow = time.AfterFunc(LongFrame, func() { _ = l.Close(0, "") })
			defer slow.Stop()
			soon, stop := context.WithTimeout(l.open, LongFrame)
			var ok bool
			held, ok = l.budget.Take(soon, int64(l.limit))
			if stop(); !ok {
				return nil, 0, &CloseError{Code: CloseTryAgain, Reason: "no memory for a long frame", Ours: true}
			}
		}
		if err := l.fill(); err != nil {
			return nil, held, l.torn(err)
		}
	}
}

// cut takes the line that ends at end out of what was read, and gives back what it does not need of the budget.
func (l *lines) cut(end int, held int64, slow *time.Timer) ([]byte, int64, error) {
	if slow != nil && !slow.Stop() {
		return nil, held, ErrClosed
	}
	if end > l.limit {
		return nil, held, fmt.Errorf("%w of %d bytes", ErrTooLong, l.limit)
	}
	line := l.split(end)
	if held > 0 {
		l.budget.Give(held - int64(min(end, int(held))))
		held = int64(end)
	}
	return line, held, nil
}

// split takes the bytes before end, and the newline there, out of what was read. A long line keeps the memory that it was read
// to.
func (l *lines) split(end int) []byte {
	line, rest := l.in[:end:end], l.in[end+1:]
	switch {
	case end >= lineRead && cap(l.in) <= 4*end:
		l.in = bytes.Clone(rest)
	case cap(l.in) > DefaultAllowance:
		line, l.in = bytes.Clone(line), bytes.Clone(rest)
	default:
		line = bytes.Clone(line)
		l.in = append(l.in[:0], rest...)
	}
	return line
}

// fill reads on.
func (l *lines) fill() error {
	if len(l.in) == cap(l.in) {
		grown := make([]byte, len(l.in), max(lineRead, min(2*cap(l.in), l.limit+1)))
		copy(grown, l.in)
		l.in = grown
	}
	n, err := l.conn.Read(l.in[len(l.in):cap(l.in)])
	l.in = l.in[:len(l.in)+n]
	if n > 0 {
		return nil
	}
	return err
}

// torn says how reading ended.
func (l *lines) torn(err error) error {
	if l.open.Err() != nil {
		return ErrClosed
	}
	if errors.Is(err, io.EOF) && len(l.in) > 0 {
		return fmt.Errorf("the last line has no newline: %w", io.ErrUnexpectedEOF)
	}
	return err
}

func (l *lines) Write(frame []byte, more bool) error {
	l.out = append(append(l.out, frame...), '\n')
	if more && len(l.out) < DefaultAllowance {
		return nil
	}
	_, err := l.conn.Write(l.out)
	if l.out = l.out[:0]; cap(l.out) > DefaultAllowance {
		l.out = nil
	}
	return err
}

func (l *lines) Short(only bool) { l.short = only }

func (l *lines) Close(int, string) error {
	var err error
	l.once.Do(func() {
		l.end()
		err = l.conn.Close()
	})
	return err
}
