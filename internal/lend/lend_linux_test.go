package lend

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A lending copies from one pipe to another.
type lending struct {
	w, r *os.File // what is lent is written to w and read from r
	from *os.File
	read chan string // all that was read of it
	err  error       // how it ended, once read gave that
}

func lendTo(t *testing.T, from, w *os.File) *lending {
	t.Helper()
	r, to := pipe(t)
	loan, err := New(from, to)
	if err != nil {
		t.Fatal(err)
	}
	l := &lending{w: w, r: r, from: from, read: make(chan string, 1)}
	go func() {
		var all []byte
		for l.err == nil {
			var b []byte
			b, l.err = loan.Pass(nil)
			all = append(all, b...)
		}
		loan.Close()
		to.Close()
		l.read <- string(all)
	}()
	return l
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func (l *lending) wantRead(t *testing.T, want string, end error) {
	t.Helper()
	if got := <-l.read; got != want || !errors.Is(l.err, end) {
		t.Errorf("taken %d bytes %.20q, %v; want %d bytes %.20q, %v", len(got), got, l.err, len(want), want, end)
	}
}

func waitFor(t *testing.T, f *os.File) {
	t.Helper()
	if err := awaitInput(f); err != nil {
		t.Fatal(err)
	}
}

func awaitInput(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return c.Read(func(fd uintptr) bool { return Ready(int(fd), unix.POLLIN) })
}

// TestAllPasses: what is written comes whole, and its end.
func TestAllPasses(t *testing.T) {
	r, w := pipe(t)
	l := lendTo(t, r, w)
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte(i % 251)
	}
	go func() {
		w.Write(text)
		w.Close()
	}()
	got, err := io.ReadAll(l.r)
	if err != nil || string(got) != string(text) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	l.wantRead(t, string(text), io.EOF)
}

// TestUnreadStays: what the reader leaves stays in the pipe, for the next one.
func TestUnreadStays(t *testing.T) {
	for range 100 {
		r, w := pipe(t)
		l := lendTo(t, r, w)
		w.WriteString("hello")
		waitFor(t, l.r)
		var b [2]byte
		if _, err := io.ReadFull(l.r, b[:]); err != nil {
			t.Fatal(err)
		}
		l.r.Close()
		l.wantRead(t, "he", unix.EPIPE)
		next := lendTo(t, r, w)
		w.WriteString(", world")
		w.Close()
		if rest, err := io.ReadAll(next.r); string(rest) != "llo, world" || err != nil {
			t.Fatalf("left %q, %v", rest, err)
		}
		next.wantRead(t, "llo, world", io.EOF)
	}
}

// TestTurns: of two who read one pipe at once each byte comes to one.
func TestTurns(t *testing.T) {
	r, w := pipe(t)
	a, b := lendTo(t, r, w), lendTo(t, r, w)
	const size = 1 << 20
	go func() {
		w.Write(make([]byte, size))
		w.Close()
	}()
	var n [2]int64
	done := make(chan bool)
	for i, l := range []*lending{a, b} {
		go func() {
			n[i], _ = io.Copy(io.Discard, l.r)
			done <- true
		}()
	}
	<-done
	<-done
	if n[0]+n[1] != size {
		t.Errorf("%d and %d bytes", n[0], n[1])
	}
}

// TestCloseEndsWaiting: whoever closes a file ends what waits on it.
func TestCloseEndsWaiting(t *testing.T) {
	r, w := pipe(t)
	l := lendTo(t, r, w)
	time.AfterFunc(10*time.Millisecond, func() { r.Close() })
	if got := <-l.read; got != "" || l.err == nil {
		t.Errorf("read %q, %v", got, l.err)
	}
}
