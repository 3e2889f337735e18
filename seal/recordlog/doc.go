// Package recordlog is an append-only log of sealed recordings: who holds one of its signed checkpoints can tell whether a
// recording that it listed then is still listed now, so that a whole recording gone missing shows.
//
// A log is a directory in the layout of C2SP tlog-tiles, which any static file server can serve:
//
//	checkpoint                  the signed head (C2SP tlog-checkpoint): "<key name>/log", size, root; one note
//	tile/<L>/<N>[.p/<W>]        hashes of the RFC 6962 tree, 256 a tile
//	tile/entries/<N>[.p/<W>]    the entries: each two bytes of length, big-endian, and so many bytes
//	index/<3 hex digits>        no part of the log: where the entries of an id stand (see disk.go); it can be deleted
//	.lock                       held by who adds
//
// An entry is the canonical JSON (RFC 8785) of an Entry: the recording's id, its seal's root, the digest of the text that its
// seal signs, who signed it, where it lay and when it was added. One recording may stand in it several times: the newest
// entry is what it must be now.
//
// Order of writes, under the lock: the entries' bundle, the tiles that it changes, the index, the checkpoint last, each file
// whole or not at all (internal/durable). Whoever is killed in between leaves the log as its checkpoint says it, and files
// beyond it that no reader asks for and the next Add replaces. So an entry may have to be added again, and never is a log left
// that does not verify. An Add reads the right edge of the tree first and holds it against the checkpoint: it never signs a
// log that has been changed.
//
// Partial tiles stay until the tile that they grow into is full: each checkpoint that was ever given away can be proved from.
//
// Proofs: of an entry, as C2SP tlog-proof, with the entry itself as its extra line; of consistency, in the form that a witness
// takes (C2SP tlog-witness, add-checkpoint).
//
// Not goals: a server, several writers on several machines, pruning.
package recordlog
