// Package wstest holds a WebSocket server to RFC 6455: the cases of the Autobahn test suite's fuzzing client, categories 1 to 7
// (framing, pings, reserved bits, opcodes, fragmentation, UTF-8, closing), with its strict expectations and its numbers.
//
// The client writes frames by hand, as broken as a case wants them and in as many pieces, and reads what comes back no less
// strictly: unmasked frames, no reserved bits, lengths in as few bytes as they need.
//
// A server answers each message with one message (an echo, or what Server.Answer takes for an answer).
package wstest
