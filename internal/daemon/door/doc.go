// Package door lets clients in: listeners, the checks of an upgrade, peers' credentials.
//
// Goals: whoever comes in is who may: a program of this machine's user over the Unix socket, a program that can name a token over
// TCP (the daemon asks for it), never a web page. What a connection speaks beyond JSON frames is not its business.
//
// # Over TCP
//
// HTTP/1.1. The path / upgrades to a WebSocket (package websock, no compression); every other path is Options.HTTP's. Each
// request is looked at first:
//
//	Host     an IP literal that is the connection's own local address, or localhost on a loopback address, or the name
//	         that Options.Listen gave, with our port; anything else is 421: a web page whose name was rebound to this address
//	         carries its own name
//	Origin   absent, or http(s):// with a host that would pass for Host; anything else is 403
//
// # Over the Unix socket
//
// The socket's mode is 0600, and the peer's credentials must be this user's or root's; anybody else is cut off unheard. The
// first byte decides: an upper-case letter begins an HTTP request (a WebSocket over the socket, metrics), anything else JSON
// texts, one a line. There any Host will do; an Origin must be http://localhost.
//
// A socket file on which nobody answers is replaced. One on which somebody answers is an error, and so is a file that is no
// socket.
//
// # Bounds
//
// Options.Connections conversations at once, beyond that an upgrade is answered 503 and lines with one error; twice that many
// connections of any kind, and no more than half of the descriptors that the process may have. A request's header is at most
// 16 KiB and must be there within 10 s.
//
// # Ownership
//
// Serve accepts and waits for all that it started: each conversation runs in a goroutine of its own, with a context that ends
// with Serve's. Stop closes the listeners and lets conversations go on.
package door
