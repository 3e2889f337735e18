// Package connect makes the connections of the programs in a jail in their place, and decides which may be made: a Unix socket that has a
// path is reached from every network namespace, and a filter does not see which path a connect has. This confines.
//
// The recorder reads the address of a connect once and connects the program's own socket (pidfd_getfd) to it. What a path means is
// looked up from the program's own root and working directory; what stands there must be a socket that the jail's network namespace,
// or that of the program's socket, says is bound to this file, or lie in a file system that the host has not mounted. Where the
// recorder fails the connect does. At most 512 wait at once, fewer where the recorder may have few descriptors, and others fail with
// EAGAIN; a signal does not end one, but the end of its caller does (not while it waits for room in a Unix socket's backlog). SO_PEERCRED
// of such a connection has the program's ids and 0 for its process. A program whose memory cannot be read connects to nothing.
// There are no Unix datagram sockets (ESOCKTNOSUPPORT); a pair of them is a pair of SOCK_SEQPACKET.
// The port that a socket gets by chance is its process's Source's to choose.
//
// Not goals: answering who connects. On systems other than Linux there is only the type of what was refused.
package connect

import (
	"net/netip"

	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
)

// A Refusal is one attempt of the program to reach what the jail does not let it reach. Addr and Port are zero where the
// attempt got no further than a socket call.
type Refusal struct {
	Proto  string // tcp, udp, unix, or the socket's family and type: "vsock stream", "inet raw"
	Path   string // of a Unix socket, absolute
	Addr   netip.Addr
	Port   uint16
	From   uint16 // of a datagram, the port of the socket that sent it; 0 else
	Reason string
	By     process.Source // who asked for a Unix socket; nil where that is not known
}
