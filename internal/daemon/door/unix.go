package door

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

func itoa(port uint16) string { return strconv.Itoa(int(port)) }

// acceptUnix takes connections of the socket until it is closed.
func (d *Door) acceptUnix(ctx context.Context) error {
	for {
		c, err := d.unix.Accept()
		if err != nil {
			if transient(err) {
				time.Sleep(50 * time.Millisecond) // out of descriptors: some will be given back
				continue
			}
			return err
		}
		d.wg.Add(1)
		go func() {
			defer d.wg.Done()
			d.greet(ctx, c)
		}()
	}
}

// greet finds out who a connection is and what it speaks.
func (d *Door) greet(ctx context.Context, c net.Conn) {
	peer, err := credentials(c)
	if err != nil {
		d.log.Warn("a peer has no credentials", "error", err)
		d.refuse("credentials", peer)
		_ = c.Close()
		return
	}
	counted := d.count(c)
	if counted == nil {
		return
	}
	conn := &unixConn{countedConn: counted, r: bufio.NewReaderSize(counted, 4<<10), peer: peer}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	first, err := conn.r.Peek(1)
	if !stop() || err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if 'A' <= first[0] && first[0] <= 'Z' {
		d.hand.give(conn)
		return
	}
	d.lines(ctx, conn)
}

// lines holds a conversation in lines.
func (d *Door) lines(ctx context.Context, conn *unixConn) {
	p := conn.peer
	p.Transport = "lines"
	open := func() (jsonrpc.Stream, error) {
		return jsonrpc.NewLines(conn, d.o.WebSocket.Limit, d.o.WebSocket.Budget), nil
	}
	d.converse(ctx, p, open, func() {
		_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"too many connections: try again later"}}`+"\n")
		_ = conn.Close()
	})
}

// A unixConn is a connection of the socket, of which a little may have been read.
type unixConn struct {
	*countedConn
	r    *bufio.Reader // nil once it is empty and not needed any more
	peer Peer
}

func (c *unixConn) Read(p []byte) (int, error) {
	if c.r != nil {
		if c.r.Buffered() > 0 {
			return c.r.Read(p)
		}
		c.r = nil
	}
	return c.countedConn.Read(p)
}

// handed is a listener whose connections somebody else accepted.
type handed struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newHanded(addr net.Addr) *handed {
	return &handed{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

func (h *handed) give(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		_ = c.Close()
	}
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *handed) Addr() net.Addr { return h.addr }

var errForeign = errors.New("the peer is another user")
