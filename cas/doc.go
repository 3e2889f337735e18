// Package cas keeps blobs under the BLAKE3-256 of their bytes.
//
// A store is a flat set: a blob has no name but its digest, the same bytes are stored once however often they are put,
// and a stored blob never changes. The directory form is what stands beside a tape (run.tape.cas/): one file a blob, its
// name the 64 lowercase hex digits. The memory form serves tests and tapes that never touch a disk. Both pass the one
// conformance suite of package castest.
//
// Reading verifies: bytes that do not hash to their name are an error that names the hash, never data. Writing is
// atomic: a blob is there whole or not at all, whatever kills the writer.
//
// Goals: verbatim bytes, bounded memory for blobs of any size, names that cannot escape the directory. Not goals:
// compression, reference counting, deletion policy (deck decides what a recording needs), knowing JSON.
package cas
