package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// certificate implements tls.Config's GetCertificate: for the name that the client asks for, else for what it dialled.
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(hello.ServerName)
	if c, ok := hello.Conn.(*conn); ok && host == "" {
		host = c.target.host()
	}
	return s.cfg.CA.Certificate(host)
}

// serveTLS passes the connection through unread where its name says so, else terminates TLS.
func (s *Server) serveTLS(c *conn) {
	if len(s.pass) > 0 {
		if name := peekServerName(c); s.pass[name] {
			s.passThrough(c, name)
			return
		}
	}
	tc := tls.Server(c, s.tls)
	ctx, cancel := context.WithTimeout(s.ctx, handshakeTimeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		s.tlsRefused(tc, c, handshakeReason(err))
		c.Close()
		return
	}
	c.secured = time.Now()
	s.ready.put(tc)
}

func (s *Server) tlsRefused(tc *tls.Conn, c *conn, reason string) {
	if s.ctx.Err() != nil {
		return // we ended it, not the program
	}
	host := tc.ConnectionState().ServerName
	if host == "" {
		host = c.target.host()
	}
	s.log.Info("TLS refused by the program", "host", host, "port", c.target.port(), "reason", reason)
	s.refused(&tape.TLSRefused{Host: host, Port: c.target.port(), Reason: reason})
}

// handshakeReason says who ended a handshake: the alert of a client is what it thinks of the recorder's certificate.
func handshakeReason(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), exchange.IsReset(err):
		return "the client closed the connection in the handshake"
	case isTimeout(err):
		return "the handshake was not finished in time"
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Sprintf("the client refused the certificate: %v", op.Err)
	}
	return fmt.Sprintf("the handshake failed: %v", err)
}

// connState implements http.Server's ConnState. Some clients (Node) judge the certificate after the handshake and then
// close: a TLS connection that ends before the first byte of a request, and before our own timeout, is such a refusal.
func (s *Server) connState(nc net.Conn, state http.ConnState) {
	c := unwrap(nc)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.active.Store(true)
	case http.StateClosed:
		if tc, ok := nc.(*tls.Conn); ok && !c.active.Load() && time.Since(c.secured) < headerTimeout {
			s.tlsRefused(tc, c, "the client closed the connection after the handshake, before a request")
		}
	}
}

// unwrap finds the program's connection below TLS; nil for a connection that is not ours.
func unwrap(nc net.Conn) *conn {
	if tc, ok := nc.(*tls.Conn); ok {
		nc = tc.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}
