package terminal

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// quiet is how long a program's output must rest before a replay types on although less was printed than while
// recording: masks and refused requests change what is printed, and a program that waits for a key prints nothing.
const quiet = 300 * time.Millisecond

// signalKeys are the bytes that a terminal makes SIGINT, SIGQUIT and SIGTSTP of.
const signalKeys = "\x03\x1c\x1a"

// EOF is the byte that ends a terminal's input at the beginning of a line.
const EOF = 4

// An Input is one run of keys: Len bytes, typed after the program had printed After bytes. What a person types answers
// what stands on the screen, so a replay that typed at once would type into a program that is not ready for it.
//
// Keys that make signals (Ctrl-C, Ctrl-\, Ctrl-Z) are no answer to anything printed: a replay types them no earlier than AtMS
// ms after the program's start, as they came, or they would reach a program that does not handle them yet.
type Input struct {
	After int64 `json:"after"`
	Len   int64 `json:"len"`
	AtMS  int64 `json:"at_ms"`
}

// A Typist knows how much a program has printed, and so when to type. Everything that the program prints must be written
// to it.
type Typist struct {
	begun   time.Time
	mu      sync.Mutex
	printed int64
	more    chan struct{} // closed and replaced whenever something is printed
}

// NewTypist returns a Typist for a program that has printed nothing yet.
func NewTypist() *Typist { return &Typist{begun: time.Now(), more: make(chan struct{})} }

// Write counts p as printed.
func (t *Typist) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.printed += int64(len(p))
	close(t.more)
	t.more = make(chan struct{})
	return len(p), nil
}

func (t *Typist) state() (printed int64, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.printed, t.more
}

// Pass passes keys from one to the other as they come, until from ends, and tells note of each run before the program can
// answer it.
func (t *Typist) Pass(to io.Writer, from io.Reader, note func(Input)) error {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			printed, _ := t.state()
			note(Input{After: printed, Len: int64(n), AtMS: time.Since(t.begun).Milliseconds()})
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Play types what was recorded, each run of keys when the program has printed as much as it had then, or when its output
// rests, and those with a signal key no earlier than they came then. The last run takes what is left of from: a secret may
// have another length there than what was typed. The error is that of either side.
func (t *Typist) Play(to io.Writer, from io.Reader, typed []Input) error {
	for i, in := range typed {
		t.wait(in.After)
		next := io.LimitReader(from, in.Len)
		if i == len(typed)-1 {
			next = from
		}
		keys, err := io.ReadAll(next)
		if err != nil {
			return err
		}
		if bytes.ContainsAny(keys, signalKeys) {
			time.Sleep(time.Duration(in.AtMS)*time.Millisecond - time.Since(t.begun))
		}
		if _, err := to.Write(keys); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when the program has printed n bytes, or nothing for a while.
func (t *Typist) wait(n int64) {
	for {
		printed, more := t.state()
		if printed >= n {
			return
		}
		select {
		case <-more:
		case <-time.After(quiet):
			return
		}
	}
}
