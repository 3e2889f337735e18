// Package network is the network boundary of a run, both halves: it records what a program asks of the network, and it
// answers the program from a tape.
//
// The program's connections arrive as accepted sockets of net.Listeners whose connections have the address that the
// program dialled as their LocalAddr: a literal address, or a synthetic one that Names gave out for a name. Package
// network needs no jail for that: any net.Listener whose connections say so will do.
//
//	program ──DNS──> DNS ── Names: a stable synthetic address for each name
//	program ──TCP──> Server ─┬─ TLS ──> CA, HTTP/1.1 or HTTP/2 ─┐
//	                         ├─ HTTP/1.1, or HTTP/2 in clear ───┴─> Tap ─┬─> the upstream   (recording)
//	                         └─ else: refused, on the tape               └─> the Book       (answering)
//
// Where no network can be made for a program, ServeProxy takes its connections as those of an HTTP proxy.
//
// Recording. Each request is read whole, begun on the Tap, and sent to its real host (or to the URL that an Upstreams
// entry gives) with no redirect followed and nothing decompressed. One read of the upstream's body is one chunk: it is
// recorded, then written and flushed to the program. The end of an answer reaches the program only after Exchange.End
// has returned; where the length is known, or the end comes with them as it does from a tape, the last bytes wait for it and
// leave with it. A failed, cut or reset upstream is recorded as
// what the program saw.
//
// Trailers of an answer are passed on, recorded and given again, and a "TE: trailers" of the program reaches the upstream. Each
// side is spoken to in HTTP/2 by ALPN. In clear an upstream is, with prior knowledge, for a gRPC call (HTTP/2, POST, a Content-Type
// of application/grpc), and for a request that came so itself and says "TE: trailers"; for any other in HTTP/1.1.
//
// gRPC calls. Their body is passed on as it comes and kept on the way (incoming); the exchange is recorded once its answer has
// ended, as one like any other where the whole request had come before the answer began. Else its record says how many messages
// had come by each step of the answer ("answered_after"). Calls of a method that was ever answered so are known by URL and first
// message on a replay, and the answer comes at once, but for its end, which waits for as many messages as had come by then (callBody);
// messages that are others than were recorded are a divergence. What does not come is waited for once: for as long as the recorded run had
// gone on by then and two seconds after the last message that came.
//
// Answering. A Server with a Book never resolves and never dials. A request whose key is on the tape gets the recorded
// status, headers and chunks, and is cut where the recorded answer was cut. Where the program had ended it, the answer
// stops and waits for the program to do so again, for as long as the recorded run had gone on by then and ten seconds; then it
// is cut, and the record says tape.HeldOn. Any other gets status 400 at once, with "x-should-retry: false", the nearest
// recorded request and the fields that differ, in the provider's own error shape.
//
// A Fork is both: the Book answers up to a point, and from there on a request goes to its upstream, changed where the Fork says so, while the
// record keeps what the program sent: a replay asks for that. No connection is opened before the point. WebSockets are not opened past it,
// and the gRPC stream that comes to it is refused once.
//
// What a program does not see: informational answers other than 100, Alt-Svc (there is no HTTP/3), the order
// and letter case of headers, the error code by which an upstream reset a stream (it is on the tape; the program gets INTERNAL_ERROR).
// Request bodies are read whole before the upstream is asked, but for gRPC's. Other protocols than
// WebSockets are not upgraded to: such a request is sent on without its Upgrade.
//
// WebSockets. A request for one is sent on over HTTP/1.1 as the program sent it. Once the upstream has answered 101 the bytes of both
// directions pass as they come (wsRelay), read aside by package wsframe; those that end a message of the server wait until its record
// is with the kernel, once for all that came together. Each side gets the end that the other one made. A replay (wsPlayer)
// reads what the program says and says what the Book's socket says, each message in one frame. docs/replay.md says the rest.
//
// Closed towards the inside of the host: no dial reaches a loopback, link-local, multicast or unspecified address, which
// is checked after resolution on the address that is really dialled, unless an Upstreams entry names it.
//
// Concurrency: all methods may be called by several goroutines at once. A Server owns its connections and handlers;
// Close ends them and waits for them.
//
// Not goals: HTTP/3, WebSockets over HTTP/2 (extended CONNECT is not offered), protocols other than HTTP and TLS (each is refused and recorded).
package network
