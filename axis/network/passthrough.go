package network

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
)

// passThrough splices a TLS connection to its real host, unread. On replay it is refused: its bytes are on no tape.
func (s *Server) passThrough(c *conn, host string) {
	if s.up == nil || s.cfg.Fork != nil {
		s.refuse(c, "passed through unread while recording, so it cannot be replayed")
		return
	}
	defer c.Close()
	if s.cfg.Passed != nil {
		s.cfg.Passed(host)
	}
	up, err := s.up.dialRaw(s.ctx, host, c.target.addr.Port())
	if err != nil {
		s.refuse(c, "passthrough: "+errorText(err))
		return
	}
	defer up.Close()
	splice(s.ctx, c, up)
}

// splice copies both ways until both sides have ended, passing half-closes on, or until ctx is done.
func splice(ctx context.Context, a *conn, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { a.Close(); b.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { halfCopy(b, a) })
	both.Go(func() { halfCopy(a.Conn, b) })
	both.Wait()
}

// halfCopy copies one way and then tells dst that no more comes.
func halfCopy(dst net.Conn, src io.Reader) {
	_, err := io.Copy(dst, src)
	if cw, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		cw.CloseWrite()
		return
	}
	dst.Close()
}

// dialRaw connects to a host, or to the host and port that its Upstreams entry names.
func (u *upstream) dialRaw(ctx context.Context, host string, port uint16) (net.Conn, error) {
	dialer := u.guard.dialer(u.resolver)
	if base := u.named.find(host, port); base != nil {
		host, port = base.Hostname(), portOf(base)
		dialer.ControlContext = nil
	}
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
}
