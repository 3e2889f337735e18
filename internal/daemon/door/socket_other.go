//go:build !unix || solaris || aix

package door

import (
	"errors"
	"net"
)

var errNoSockets = errors.New("this system does not say who is at the other end of a Unix socket: listen on a loopback address")

func listenUnix(string) (net.Listener, fileID, error) { return nil, fileID{}, errNoSockets }

func transient(error) bool { return false }

func credentials(net.Conn) (Peer, error) { return Peer{Unix: true}, errNoSockets }
