// Package websock carries the frames of package jsonrpc over WebSockets (RFC 6455), one JSON text in one text message.
//
// It reads frames itself, and is as strict as the RFC allows: what breaks a rule is answered with a close code at the first byte that
// shows it. Text that is not UTF-8 is refused at its first wrong byte, not at the end of its message; so is the reason of a close; a
// frame longer than the limit is refused when its header says so, before any of it is kept; a client's frame without a mask, or with
// a length in more bytes than it needs, gets a code and not silence. A client of this package is as strict with its server.
//
// Compression is never offered and never taken.
//
// # Close codes that a server sends
//
//	1000  closed in good order
//	1001  shutting down
//	1002  RFC 6455 is violated: reserved bits or opcodes, fragmented or long control frames, a continuation of nothing,
//	      a message within a message, no mask, a wrong close code
//	1003  a binary message
//	1007  text, or the reason of a close, is not UTF-8
//	1008  not authenticated; a long frame that took longer than jsonrpc.LongFrame
//	1009  a message longer than the limit
//	1013  no memory for a long frame within that time
//
// # A peer that is no more
//
// A connection on which nothing came for Options.PingEvery is sent a ping. When nothing comes for Options.PongWithin after
// that, it is dropped. While this side does not read, because the peer sent too much, the peer is not asked.
//
// # Memory
//
// A message up to jsonrpc.DefaultAllowance bytes is read without asking the Budget. A longer one first takes the limit's worth of
// it, and gives back what it did not need once it is whole.
package websock
