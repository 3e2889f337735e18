//go:build linux || darwin

package terminal

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Caller is the terminal of who runs us, on which a program of ours is shown that has one of its own. It is ours from
// Take to Release; meanwhile keys reach us as they are typed, and what is written is shown as it stands, for it has been
// through the program's terminal already.
type Caller struct {
	tty    *os.File // one of its streams
	Keys   *os.File // where keys are read; nil for nowhere
	opened bool     // Keys is not one of the caller's streams

	mu  sync.Mutex
	was *unix.Termios // how Release leaves it; nil while it is not ours
}

// NewCaller returns the terminal of the caller's streams, or nil where none of them is one. Keys are read from stdin, and
// where that is something else, from the terminal that the process has.
func NewCaller(std [3]any) *Caller {
	host, _ := Host(std)
	if host == nil {
		return nil
	}
	c := &Caller{tty: host}
	if f, ok := std[0].(*os.File); ok && Is(f) {
		c.Keys = f
	} else if f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		c.Keys, c.opened = f, true
	}
	return c
}

// Foreground reports whether we may read the terminal and change its modes: who does from the background is stopped. A nil
// Caller, and a terminal that is not the one that the process has, do not know of jobs.
func (c *Caller) Foreground() bool {
	if c == nil {
		return true
	}
	group, err := 0, error(nil)
	if errControl := control(c.tty, func(fd int) { group, err = unix.IoctlGetInt(fd, getForegroup) }); errControl != nil {
		return false
	}
	return err != nil || group == unix.Getpgrp()
}

// DropKeys forgets what was typed and not read yet, the beginning of a line too.
func (c *Caller) DropKeys() {
	_ = control(c.Keys, func(fd int) {
		if t, err := unix.IoctlGetTermios(fd, getTermios); err == nil {
			_ = unix.IoctlSetTermios(fd, setFlushed, t) // a terminal that is gone has nothing to read
		}
	})
}

// Take makes the terminal ours: with keys, every key comes as it is typed; without, lines and the keys that send signals
// stay what they are. Does nothing while it is ours.
func (c *Caller) Take(keys bool) error {
	return c.take(func(t *unix.Termios) {
		if keys {
			t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
			t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
			t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		}
	})
}

// TakeDeaf makes the terminal ours for a program that is given other keys than are typed: what is typed, and what the
// terminal itself answers to the program's questions, is not shown and, by Release, thrown away. The keys that send
// signals do.
func (c *Caller) TakeDeaf() error {
	return c.take(func(t *unix.Termios) { t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON })
}

func (c *Caller) take(change func(*unix.Termios)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.was != nil {
		return nil
	}
	was, err := modesOf(c.tty)
	if err != nil {
		return err
	}
	now := *was
	change(&now)
	now.Oflag &^= unix.OPOST
	if err := setModes(c.tty, setDrained, &now); err != nil {
		return err
	}
	c.was = was
	return nil
}

// Release gives the terminal back as Take found it, what was typed and not read with it; after TakeDeaf that is thrown
// away. Does nothing while it is not ours.
func (c *Caller) Release(flush bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.was == nil {
		return
	}
	request := uint(setDrained)
	if flush {
		request = setFlushed
	}
	setModes(c.tty, request, c.was)
	c.was = nil
}

// Close releases the terminal.
func (c *Caller) Close() {
	if c == nil {
		return
	}
	c.Release(false)
	if c.opened {
		c.Keys.Close()
	}
}

// Writer returns a writer to the caller's stream w of what a program wrote to a terminal of its own, whose ends of lines
// are \r\n. While w, a terminal, is not ours, it would make \r\r\n of them, and is given \n.
func (c *Caller) Writer(w io.Writer) io.Writer {
	f, ok := w.(conn)
	if c == nil || !ok {
		return w
	}
	if _, err := modesOf(f); err != nil {
		return w
	}
	return &lines{c: c, w: w}
}

// File is one of the caller's streams that is the terminal.
func (c *Caller) File() *os.File { return c.tty }

// Size is the terminal's size, or false where it, or a nil Caller, has none.
func (c *Caller) Size() (Size, bool) {
	if c == nil {
		return Size{}, false
	}
	return sizeOf(c.tty)
}

// lines is a terminal of the caller that ends lines by itself while it is not ours.
type lines struct {
	c    *Caller
	w    io.Writer
	held bool // a \r that was not written yet
	buf  []byte
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.c.mu.Lock()
	ours := l.c.was != nil
	l.c.mu.Unlock()
	if ours && !l.held {
		return l.w.Write(p)
	}
	l.buf = l.buf[:0]
	for _, b := range p {
		if l.held && (ours || b != '\n') {
			l.buf = append(l.buf, '\r')
		}
		if l.held = b == '\r' && !ours; !l.held {
			l.buf = append(l.buf, b)
		}
	}
	if _, err := l.w.Write(l.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Follow calls changed with the size of the host terminal whenever that may be another, until stop is called, which may be
// more than once. It returns when nothing is told any more.
func Follow(host *os.File, changed func(Size)) (stop func()) {
	if host == nil {
		return func() {}
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGWINCH)
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			if size, ok := sizeOf(host); ok {
				changed(size)
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
		following.Wait()
	})
}
