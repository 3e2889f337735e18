package websock

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

// pieces gives bytes in pieces of a size, and takes what is sent back.
type pieces struct {
	b    []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.b[:min(len(p.b), p.size)])
	p.b = p.b[n:]
	return n, nil
}

func (p *pieces) Write(b []byte) (int, error) { return len(b), nil }

// streamOf is a server's stream of bytes that come in pieces of a size.
func streamOf(b []byte, size int, o *Options) *Stream {
	p := &pieces{b, size}
	f := o.filled()
	f.PingEvery = -1
	return newStream(&Stream{wire: &wire{}, in: bufio.NewReader(p), out: p}, f)
}

// FuzzFrames reads the same whatever pieces the bytes come in, and takes no text that is not UTF-8.
func FuzzFrames(f *testing.F) {
	frame := func(fin bool, op byte, p string) []byte {
		return Frame{Fin: fin, Op: op, Payload: []byte(p)}.Append(nil)
	}
	f.Add(frame(true, 1, "hello"), uint8(3))
	f.Add(append(frame(false, 1, "\xce"), frame(true, 0, "\xba")...), uint8(1))
	f.Add(append(frame(true, 9, "ping"), frame(true, 8, "\x03\xe8bye")...), uint8(7))
	f.Add(frame(true, 1, strings.Repeat("ä", 1000)+"\xff"), uint8(100))
	f.Add(frame(true, 2, "x"), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		once, inPieces := streamOf(b, len(b), &Options{Limit: 1 << 16}), streamOf(b, int(piece)+1, &Options{Limit: 1 << 16})
		for {
			want, _, errWant := once.Read()
			got, _, err := inPieces.Read()
			if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(errWant) {
				t.Fatalf("in pieces of %d: %q, %v; at once: %q, %v", int(piece)+1, got, err, want, errWant)
			}
			if err != nil {
				return
			}
			if !utf8.Valid(got) {
				t.Fatalf("%q passed", got)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for name, s := range map[string]string{"ascii": strings.Repeat("a", 4096), "accents": strings.Repeat("äöü and so on ", 273)} {
		b.Run(name, func(b *testing.B) {
			frame := Frame{Fin: true, Op: Text, Payload: []byte(s)}.Append(nil)
			b.SetBytes(int64(len(frame)))
			from := &pieces{nil, len(frame)}
			stream := newStream(&Stream{wire: &wire{}, in: bufio.NewReader(from), out: from}, (&Options{PingEvery: -1}).filled())
			for b.Loop() {
				from.b = frame
				if _, _, err := stream.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// client connects by hand.
func client(t testing.TB, url string, header http.Header) *Client {
	t.Helper()
	c, err := dialRaw(t.Context(), url, header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echoes echoes text through jsonrpc's own interface, and says how each conversation ended.
func echoes(t testing.TB, o *Options) (url string, ends <-chan error) {
	ch := make(chan error, 100)
	return serve(t, o, func(s *Stream) {
		for {
			b, held, err := s.Read()
			if err != nil {
				hangUp(s, err)
				ch <- err
				return
			}
			s.o.Budget.Give(held)
			if err := s.Write(b, false); err != nil {
				ch <- err
				return
			}
		}
	}), ch
}

// TestALongFrameIsRefusedByItsHeader closes before anything of 64 MiB has come.
func TestALongFrameIsRefusedByItsHeader(t *testing.T) {
	url, ends := echoes(t, nil)
	c := client(t, url, nil)
	if _, err := c.Write([]byte{0x81, 0xff, 0, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Next(); err != nil || e.Code != jsonrpc.CloseTooLong {
		t.Errorf("got %+v, %v", e, err)
	}
	_ = c.Close()
	var closed *jsonrpc.CloseError
	if err := <-ends; !errors.As(err, &closed) || closed.Code != jsonrpc.CloseTooLong {
		t.Errorf("the server says %v", err)
	}
}

// TestALongFrameThatIsSentWhole reaches a client that reads only when it has written all 64 MiB, in one frame or in many.
func TestALongFrameThatIsSentWhole(t *testing.T) {
	const total = 64 << 20
	for _, fragment := range []int{total, 1 << 20} {
		t.Run(fmt.Sprint(fragment), func(t *testing.T) {
			url, _ := echoes(t, nil)
			c := client(t, url, nil)
			frame := Frame{Op: Text, Fin: fragment == total}.Append(nil)
			head := append([]byte{frame[0], 0xff}, binary.BigEndian.AppendUint64(nil, uint64(fragment))...)
			payload := bytes.Repeat([]byte("x"), fragment) // masked with zeros, which a mask may be
			for i := range total / fragment {
				if i > 0 {
					head[0] = Continuation
				}
				for _, b := range [][]byte{append(head, 0, 0, 0, 0), payload} {
					if _, err := c.Write(b); err != nil {
						t.Fatal(err)
					}
				}
			}
			if e, err := c.Next(); err != nil || e.Code != jsonrpc.CloseTooLong {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}

func TestBrokenHeaders(t *testing.T) {
	tests := []struct {
		name  string
		bytes string
		code  int
	}{
		{"no mask", "\x81\x02{}", jsonrpc.CloseProtocol},
		{"two bytes of length for 5", "\x81\xfe\x00\x05\x00\x00\x00\x00hello", jsonrpc.CloseProtocol},
		{"eight bytes of length for 5", "\x81\xff\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00hello", jsonrpc.CloseProtocol},
		{"a negative length", "\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", jsonrpc.CloseProtocol},
		{"a ping of 126", "\x89\xfe\x00\x7e\x00\x00\x00\x00", jsonrpc.CloseProtocol},
		{"binary", "\x82\x82\x00\x00\x00\x00{}", jsonrpc.CloseUnsupported},
		{"compressed", "\xc1\x82\x00\x00\x00\x00{}", jsonrpc.CloseProtocol},
		{"HTTP", "GET / HTTP/1.1\r\n\r\n", jsonrpc.CloseProtocol},
	}
	url, _ := echoes(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, url, nil)
			// What was right before the wrong byte, in the same packet, is answered.
			if _, err := c.Write(append(Frame{Fin: true, Op: Text, Payload: []byte("right")}.Append(nil), tt.bytes...)); err != nil {
				t.Fatal(err)
			}
			if e, err := c.Next(); err != nil || e.Payload != "right" {
				t.Errorf("got %+v, %v", e, err)
			}
			if e, err := c.Next(); err != nil || e.Code != tt.code {
				t.Errorf("got %+v, %v, want %d", e, err, tt.code)
			}
			if err := c.End(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDeflateIsNotTaken offers it as browsers and libraries do.
func TestDeflateIsNotTaken(t *testing.T) {
	url, _ := echoes(t, nil)
	c := client(t, url, http.Header{"Sec-WebSocket-Extensions": {"permessage-deflate; client_max_window_bits, permessage-deflate"}})
	if got := c.Response.Header.Get("Sec-WebSocket-Extensions"); got != "" {
		t.Errorf("the server takes %q", got)
	}
	if err := c.Send(Frame{Fin: true, Op: Text, Payload: []byte("plain")}); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Next(); err != nil || e.Payload != "plain" {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestWordsBehindTheRequest come in the same packet as the upgrade.
func TestWordsBehindTheRequest(t *testing.T) {
	url, _ := echoes(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	frame := Frame{Fin: true, Op: Text, Payload: []byte("early")}.Append(nil)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"+string(frame))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var got []byte
	for b := make([]byte, 1000); !bytes.HasSuffix(got, []byte("\x81\x05early")); {
		n, err := conn.Read(b)
		if got = append(got, b[:n]...); err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// pipes is a listener whose connections are pipes: time stands still while both ends wait.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error { close(p); return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestAHalfOpenPeer answers no ping and is dropped; one that answers stays.
func TestAHalfOpenPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, ends := make(pipes), make(chan error, 1)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s, err := Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close(0, "")
			_, _, err = s.Read()
			ends <- err
		})}
		go srv.Serve(in)
		defer srv.Close()
		near, far := net.Pipe()
		in <- far
		c, err := upgradeRaw(near, "host", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		for range 3 { // it pings, and is answered
			f, err := c.ReadFrame()
			if err != nil || f.Op != Ping {
				t.Fatalf("got %+v, %v, want a ping", f, err)
			}
			if err := c.Send(Frame{Fin: true, Op: Pong, Payload: f.Payload}); err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(time.Minute))
		}
		if took := time.Since(began); took != 90*time.Second {
			t.Errorf("three pings took %v", took)
		}
		if f, err := c.ReadFrame(); err != nil || f.Op != Ping {
			t.Fatalf("got %+v, %v, want a ping", f, err)
		}
		if err := <-ends; err == nil { // which is not answered
			t.Error("no error")
		}
		if took := time.Since(began); took != 135*time.Second {
			t.Errorf("it was given up after %v", took)
		}
	})
}

// TestAPeerThatIsNotReadIsNotAsked keeps a connection whose server does not read for a while: its pongs wait like all else.
func TestAPeerThatIsNotReadIsNotAsked(t *testing.T) {
	o := &Options{PingEvery: 10 * time.Millisecond, PongWithin: 10 * time.Millisecond}
	goOn := make(chan struct{})
	url := serve(t, o, func(s *Stream) {
		<-goOn
		b, _, err := s.Read()
		if err == nil {
			err = s.Write(b, false)
		}
		if err != nil {
			t.Error(err)
		}
	})
	c := client(t, url, nil)
	if err := c.Send(Frame{Fin: true, Op: Text, Payload: []byte("patient")}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // ten times what would be too long
	close(goOn)
	if e, err := c.Next(); err != nil || e.Payload != "patient" {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestFramesOfAllLengths come back as they were, in memory of their own, and pay for what they hold.
func TestFramesOfAllLengths(t *testing.T) {
	budget := jsonrpc.NewBudget(4 << 20)
	type read struct {
		b    []byte
		held int64
	}
	reads := make(chan read, 100)
	url := serve(t, &Options{Limit: 1 << 20, Budget: budget}, func(s *Stream) {
		for {
			b, held, err := s.Read()
			if err != nil {
				close(reads)
				return
			}
			reads <- read{b, held}
		}
	})
	s, err := Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	lengths := []int{0, 1, 4095, 4096, 4097, 16383, 16384, 65535, 65536, 65537, 100_000, 1<<20 - 1, 1 << 20}
	sent := make(chan error, 1)
	go func() {
		for i, n := range lengths {
			if err := s.Write(bytes.Repeat([]byte{'a' + byte(i)}, n), i%2 == 0); err != nil {
				sent <- err
				return
			}
		}
		sent <- s.Close(jsonrpc.CloseNormal, "")
	}()
	go func() { // a client reads too, or there is no end
		_, _, _ = s.Read()
	}()
	var all []read
	var held int64
	for r := range reads {
		all = append(all, r)
		held += r.held
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	for i, n := range lengths {
		if i >= len(all) || string(all[i].b) != strings.Repeat(string(rune('a'+i)), n) {
			t.Errorf("a frame of %d bytes did not come as it was", n)
			continue
		}
		if long := n > jsonrpc.DefaultAllowance; long && all[i].held != int64(n) || !long && all[i].held > int64(n) {
			t.Errorf("a frame of %d bytes holds %d", n, all[i].held)
		}
	}
	if used, _ := budget.Used(); used != held {
		t.Errorf("%d in the budget, the frames hold %d", used, held)
	}
}

// TestAMessageThatIsCutOff by the end of the connection is no message, wherever it was cut.
func TestAMessageThatIsCutOff(t *testing.T) {
	whole := Frame{Fin: true, Op: Text, Payload: []byte(`{}   `)}.Append(nil)
	for n := 1; n < len(whole); n++ {
		read := make(chan error, 1)
		url := serve(t, nil, func(s *Stream) {
			_, _, err := s.Read()
			read <- err
		})
		c := client(t, url, nil)
		if _, err := c.Write(whole[:n]); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if err := <-read; err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%d of %d bytes: got %v", n, len(whole), err)
		}
	}
}

// TestNoMemory refuses a long frame when others hold all of the budget, and says so.
func TestNoMemory(t *testing.T) {
	budget := jsonrpc.NewBudget(1 << 20)
	budget.TryTake(1 << 20)
	whole := Frame{Fin: true, Op: Text, Payload: bytes.Repeat([]byte("x"), 100_000)}.Append(nil)
	s := streamOf(whole, len(whole), &Options{Limit: 1 << 20, Budget: budget})
	s.end() // as after LongFrame
	var closed *jsonrpc.CloseError
	_, held, err := s.Read()
	if !errors.As(err, &closed) || closed.Code != jsonrpc.CloseTryAgain || held != 0 {
		t.Errorf("got %v, %d held", err, held)
	}
}

// TestALongMessageThatBreaksOff gives its memory back, whatever ends it.
func TestALongMessageThatBreaksOff(t *testing.T) {
	begun := Frame{Op: Text, Payload: bytes.Repeat([]byte("x"), 100_000)}.Append(nil)
	for name, then := range map[string][]byte{
		"the connection ends": nil,
		"a broken rule":       {0xff},
		"a close":             Frame{Fin: true, Op: Close}.Append(nil),
	} {
		budget := jsonrpc.NewBudget(1 << 20)
		b := append(bytes.Clone(begun), then...)
		if _, held, err := streamOf(b, len(b), &Options{Limit: 1 << 20, Budget: budget}).Read(); err == nil || held != 0 {
			t.Errorf("%s: got %v, %d held", name, err, held)
		}
		if used, _ := budget.Used(); used != 0 {
			t.Errorf("%s: %d bytes were not given back", name, used)
		}
	}
}

// TestALongFrameThatStalls is given up after jsonrpc.LongFrame, with its close code, and gives its memory back.
func TestALongFrameThatStalls(t *testing.T) {
	if os.Getenv("TAPEDECK_LONG") == "" {
		t.Skip("set TAPEDECK_LONG=1")
	}
	t.Parallel()
	budget := jsonrpc.NewBudget(1 << 20)
	url, ends := echoes(t, &Options{Limit: 1 << 20, Budget: budget})
	c := client(t, url, nil)
	whole := Frame{Fin: true, Op: Text, Payload: bytes.Repeat([]byte("x"), 500_000)}.Append(nil)
	began := time.Now()
	if _, err := c.Write(whole[:200_000]); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Next(); err != nil || e.Code != jsonrpc.ClosePolicy {
		t.Errorf("got %+v, %v", e, err)
	}
	if took := time.Since(began); took < jsonrpc.LongFrame || took > jsonrpc.LongFrame+20*time.Second {
		t.Errorf("after %v", took)
	}
	<-ends
	if used, _ := budget.Used(); used != 0 {
		t.Errorf("%d bytes were not given back", used)
	}
}

// TestADeadNetwork does not keep Close(0): the other end neither reads nor closes.
func TestADeadNetwork(t *testing.T) {
	closed := make(chan struct{})
	url := serve(t, nil, func(s *Stream) {
		wrote := make(chan error, 1)
		go func() { wrote <- s.Write(bytes.Repeat([]byte("x"), 64<<20), false) }()
		go func() { _, _, _ = s.Read() }()
		time.Sleep(50 * time.Millisecond) // until the network is full
		_ = s.Close(0, "")
		if <-wrote == nil {
			t.Error("64 MiB were written to nobody")
		}
		close(closed)
	})
	_ = client(t, url, nil)
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("it hangs")
	}
}

func TestDialSaysWhy(t *testing.T) {
	s := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "web pages of this origin may not talk to the daemon", http.StatusForbidden)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	_, err = Dial(context.Background(), "ws://"+l.Addr().String(), nil)
	if err == nil || !strings.Contains(err.Error(), "403") || !strings.Contains(err.Error(), "may not talk") {
		t.Errorf("got %v", err)
	}
}
