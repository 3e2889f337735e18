package mcp

import (
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestUnread tells what a client has not read of a pipe and of a socket.
func TestUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string][2]*os.File{"pipe": {r, w}, "socket": {os.NewFile(uintptr(pair[0]), "a"), os.NewFile(uintptr(pair[1]), "b")}}
	for name, e := range ends {
		defer e[0].Close()
		defer e[1].Close()
		if _, err := e[1].Write([]byte("four")); err != nil {
			t.Fatal(err)
		}
		if n := unread(e[1]); n <= 0 { // a socket counts its own overhead too
			t.Errorf("%s: %d bytes are unread, want some", name, n)
		}
		if _, err := e[0].Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		if n := unread(e[1]); n != 0 {
			t.Errorf("%s: %d bytes are unread, want 0", name, n)
		}
	}
}

// settled writes what a server says in one go and returns what each read of the client brings.
func settled(t *testing.T, say func(), client *os.File, n int) (reads []string) {
	t.Helper()
	go say()
	buf := make([]byte, 1<<16)
	_ = client.SetReadDeadline(time.Now().Add(10 * time.Second))
	for range n {
		time.Sleep(2 * settleStep) // whatever comes at once is there by then
		got, err := client.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		reads = append(reads, string(buf[:got]))
	}
	return reads
}

// TestAnswersComeApart: an answer that a server wrote together with a notification comes in a read of its own.
func TestAnswersComeApart(t *testing.T) {
	const progress, more, answer = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}` + "\n",
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + "\n",
		`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	var files [4][2]*os.File
	for i := range files {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		files[i] = [2]*os.File{r, w}
	}
	toRelay, toServer, fromServer, toClient := files[0], files[1], files[2], files[3]
	w, err := tape.NewWriter(io.Discard, &tape.Header{})
	if err != nil {
		t.Fatal(err)
	}
	log := NewLog(tape.NewRecorder(w, &tape.RecorderOptions{Store: cas.NewMemory()}), nil, nil, nil)
	done := make(chan error, 1)
	go func() {
		_, err := Relay(t.Context(), &RelayOptions{
			Log: log, Opened: &Opened{Transport: Stdio, Program: "p"},
			ClientIn: toRelay[0], ClientOut: toClient[1], ServerIn: toServer[1], ServerOut: fromServer[0],
			settles: time.Minute, // on a machine that is busy
		})
		done <- err
	}()
	say := func(f *os.File, text string) {
		if _, err := io.WriteString(f, text); err != nil {
			t.Error(err)
		}
	}
	in := make([]byte, 1<<16)
	for i, ask := range []string{`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}` + "\n"} {
		say(toRelay[1], ask)
		if _, err := toServer[0].Read(in); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			say(fromServer[1], `{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"s"}}}`+"\n")
			if _, err := toClient[0].Read(in); err != nil {
				t.Fatal(err)
			}
		}
	}
	reads := settled(t, func() { say(fromServer[1], progress+more+answer+progress) }, toClient[0], 2)
	if want := []string{progress + more, answer + progress}; !slices.Equal(reads, want) {
		t.Errorf("the client read %q, want %q", reads, want)
	}
	toRelay[1].Close()
	fromServer[1].Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
