// Package wsframe reads and writes the frames of RFC 6455 and assembles the messages in them, compressed ones too (RFC 7692).
//
// It is for whoever stands beside a connection: an Assembler is fed the bytes of one direction as they come, in any pieces, and
// tells of each message, ping, pong and close frame where its last byte is. It changes and holds up nothing, and judges less
// than an end of a connection has to: text need not be UTF-8, masks may be missing, codes may be any. What it cannot go on
// from (an opcode or a bit that nobody agreed on, a fragment out of place) it tells as Broken, and is deaf from then on.
//
// Bounds: a message of more than Options.Limit bytes is told as lost, without them. Inflating one stops at that many bytes, and goes on
// in a window of 32 KiB alone so that later messages, which may refer to it, can be read; beyond 256 MiB that ends too, and compressed
// messages that need it are lost.
//
// Not goals: connections, handshakes but for what an answer says of permessage-deflate, compressing.
//
// Concurrency: an Assembler is used by one goroutine at a time.
package wsframe
