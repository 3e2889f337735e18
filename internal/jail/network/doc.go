// Package network is the network of a jail: every address is local, and leads to sockets that its init opens inside and hands to the recorder.
//
// The init makes the routes and Sockets: a listener of each port, DNS, one socket that tells of Unix sockets, and one that sees the packets on
// the loopback device that say what was refused. The recorder Takes them over: an address that the DNS socket read from makes its answer
// come from where the query was sent to; a Sniffer makes refusals of packets.
//
// Not goals: answering anything (axis/network does). On systems other than Linux there is only NoListener.
package network

// NoListener is the Reason of a connection to a port on which no program of the jail listens.
const NoListener = "tcp: nothing listens on this port inside"
