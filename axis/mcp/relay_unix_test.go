//go:build unix

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// A joint is how a client and a server are joined: by pipes, by two sockets, or by one.
type joint struct {
	name string
	make func(t testing.TB) joined
}

// joined are the files of the client and of the server, and those between, for a Relay. A joint of one socket has the same
// file, or descriptors of it, for both directions.
type joined struct {
	clientWrites, clientReads, serverReads, serverWrites *os.File
	options                                              mcp.RelayOptions
}

func joints() []joint {
	return []joint{
		{"pipes", func(t testing.TB) (j joined) {
			j.options.ClientIn, j.clientWrites = pipe(t)
			j.clientReads, j.options.ClientOut = pipe(t)
			j.serverReads, j.options.ServerIn = pipe(t)
			j.options.ServerOut, j.serverWrites = pipe(t)
			return j
		}},
		{"blocking pipes", func(t testing.TB) (j joined) {
			j.options.ClientIn, j.clientWrites = blockingPipe(t)
			j.clientReads, j.options.ClientOut = blockingPipe(t)
			j.serverReads, j.options.ServerIn = blockingPipe(t)
			j.options.ServerOut, j.serverWrites = blockingPipe(t)
			return j
		}},
		{"sockets", func(t testing.TB) (j joined) {
			j.options.ClientIn, j.clientWrites = sockets(t)
			j.clientReads, j.options.ClientOut = sockets(t)
			j.serverReads, j.options.ServerIn = sockets(t)
			j.options.ServerOut, j.serverWrites = sockets(t)
			return j
		}},
		{"one socket", func(t testing.TB) (j joined) {
			j.options.ClientIn, j.clientWrites = sockets(t)
			j.options.ClientOut, j.clientReads = j.options.ClientIn, j.clientWrites
			j.serverReads, j.options.ServerIn = sockets(t)
			j.options.ServerOut, j.serverWrites = j.options.ServerIn, j.serverReads
			return j
		}},
		{"one socket by two descriptors", func(t testing.TB) (j joined) {
			j.options.ClientIn, j.clientWrites = sockets(t)
			j.options.ClientOut, j.clientReads = again(t, j.options.ClientIn), j.clientWrites
			j.serverReads, j.options.ServerIn = sockets(t)
			j.options.ServerOut, j.serverWrites = again(t, j.options.ServerIn), j.serverReads
			return j
		}},
	}
}

func blockingPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func sockets(t testing.TB) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range fds {
		if err := unix.SetNonblock(fds[i], true); err != nil {
			t.Fatal(err)
		}
	}
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func again(t testing.TB, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.SetNonblock(fd, true) // Fd has made it blocking
	return os.NewFile(uintptr(fd), "again")
}

// closeWrites ends what f writes, as shutdown does for a socket that is read too.
func closeWrites(t testing.TB, f, reads *os.File) {
	t.Helper()
	if f != reads {
		f.Close()
		return
	}
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) }); err != nil {
		t.Fatal(err)
	}
}

// eachJoint runs f with a relay over each joint, in each state that a relay may have, and wants the relay to end by itself and to leave
// neither a goroutine nor a descriptor.
func eachJoint(t *testing.T, f func(t *testing.T, j *joined)) {
	for _, joint := range joints() {
		for _, state := range []string{"undecided", "recorded", "plain"} {
			t.Run(joint.name+"/"+state, func(t *testing.T) {
				j := joint.make(t)
				before := runtime.NumGoroutine()
				done := make(chan error, 1)
				j.options.Log, j.options.Opened = newRig(t).log, &mcp.Opened{Transport: mcp.Stdio, Program: "server"}
				go func() {
					_, err := mcp.Relay(t.Context(), &j.options)
					done <- err
				}()
				switch state {
				case "recorded":
					passes(t, j.clientWrites, j.serverReads, askInit+"\n")
					passes(t, j.serverWrites, j.clientReads, ansInit+"\n")
				case "plain":
					passes(t, j.clientWrites, j.serverReads, "GET\x00\xff")
				}
				f(t, &j)
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(10 * time.Second):
					buf := make([]byte, 1<<16)
					t.Fatalf("the relay goes on\n%s", buf[:runtime.Stack(buf, true)])
				}
				for range 100 { // goroutines end a moment after what they say
					if runtime.NumGoroutine() <= before {
						return
					}
					runtime.Gosched()
					time.Sleep(time.Millisecond)
				}
				t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			})
		}
	}
}

// passes writes text and wants to read it.
func passes(t testing.TB, w io.Writer, r io.Reader, text string) {
	t.Helper()
	go func() { _, _ = io.WriteString(w, text) }()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(r, b); err != nil || string(b) != text {
		t.Fatalf("read %.80q, %v; want %.80q", b, err, text)
	}
}

// ends wants the end of what is read.
func ends(t testing.TB, r io.Reader) {
	t.Helper()
	if b, err := io.ReadAll(r); len(b) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %q, %v behind the end", b, err)
	}
}

// breaks wants a write to fail soon.
func breaks(t testing.TB, w io.Writer) {
	t.Helper()
	for range 5000 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the write failed with %v", err)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("writes go on where nobody reads")
}

// The client closes the server's stdin; the server goes on for a while, and ends.
func TestClientEndsFirst(t *testing.T) {
	eachJoint(t, func(t *testing.T, j *joined) {
		closeWrites(t, j.clientWrites, j.clientReads)
		ends(t, j.serverReads)
		passes(t, j.serverWrites, j.clientReads, "still here\n")
		j.serverReads.Close()
		j.serverWrites.Close()
		ends(t, j.clientReads)
	})
}

// The server is gone, and the client neither writes nor closes.
func TestServerIsGone(t *testing.T) {
	eachJoint(t, func(t *testing.T, j *joined) {
		j.serverWrites.Close()
		j.serverReads.Close()
		ends(t, j.clientReads)
		breaks(t, j.clientWrites)
	})
}

// The client is gone, and the server neither writes nor closes, until it learns of it.
func TestClientIsGone(t *testing.T) {
	eachJoint(t, func(t *testing.T, j *joined) {
		j.clientWrites.Close()
		j.clientReads.Close()
		ends(t, j.serverReads)
		breaks(t, j.serverWrites)
		j.serverReads.Close()
		j.serverWrites.Close()
	})
}

// Much passes in both directions at once, and the last of it before the end.
func TestMuchPasses(t *testing.T) {
	text := strings.Repeat(strings.Repeat("0123456789abcde", 17)+"\n", 1<<10) // more than any pipe holds
	eachJoint(t, func(t *testing.T, j *joined) {
		go func() {
			_, _ = io.WriteString(j.clientWrites, text)
			closeWrites(t, j.clientWrites, j.clientReads)
		}()
		go func() {
			_, _ = io.Copy(j.serverWrites, io.LimitReader(j.serverReads, int64(len(text))))
			ends(t, j.serverReads)
			j.serverWrites.Close()
			j.serverReads.Close()
		}()
		if b, err := io.ReadAll(j.clientReads); err != nil || string(b) != text {
			t.Errorf("read %d bytes of %d, %v", len(b), len(text), err)
		}
	})
}

// Who does not read is cut off with everybody when the recorder ends.
func TestRelayIsCut(t *testing.T) {
	for _, joint := range joints() {
		t.Run(joint.name, func(t *testing.T) {
			j := joint.make(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			j.options.Log, j.options.Opened = newRig(t).log, &mcp.Opened{Transport: mcp.Stdio, Program: "server"}
			go func() {
				_, err := mcp.Relay(ctx, &j.options)
				done <- err
			}()
			passes(t, j.clientWrites, j.serverReads, askInit+"\n")
			stuck := make(chan struct{})
			go func() {
				defer close(stuck)
				_, _ = j.serverWrites.Write(bytes.Repeat([]byte("x"), 1<<22))
			}()
			_, _ = io.ReadFull(j.clientReads, make([]byte, 1000))
			cancel()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the relay goes on")
			}
			<-stuck
		})
	}
}
