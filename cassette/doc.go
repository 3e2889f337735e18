// Package cassette is a directory of evidence of one terminal session of one program: what it printed, what was typed, when,
// how it ended, and what stood on the screen. Raw bytes and their index are authoritative; frames are derived from them.
//
// Goals: exact (every byte, one order over everything, one monotonic clock); readable by others and from others
// (docs/reference/cassette.md says every key); streaming (memory grows neither with recording nor with reading); hard to break (a
// recorder that is killed leaves what Partial opens, never what looks finished; a reader refuses what is not sound); without
// secrets (what scrub/tty finds is masked before it reaches the disk, and proved at the end).
//
// Vocabulary: a chunk is one read of output; a frame is the screen at an offset of output; an event is a line of any of the
// five streams (input, output, frames, service events, final), which share one sequence from 1 without gaps.
//
// Time: t_ms is milliseconds of a monotonic clock since the start, floored to the resolution, and never goes back.
//
// Durability: streams are appended to and given to the kernel whenever the recorder has nothing else to do; whole files are
// put in place by internal/durable, the manifest last of all. A directory without a manifest is an unfinished recording.
//
// Concurrency: a Recorder may be used by several goroutines at once; a Reader too. Iterators are for one each.
//
// Compatibility: format version 1. What an earlier producer wrote loads: keys in either case, absent optional keys, unknown
// keys and files. What we write comes in the order of the format, our own keys behind.
//
// Not goals: to know any particular program; to start one (axis/terminal does); to draw.
package cassette
