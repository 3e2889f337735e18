// Package tape reads and writes event tapes, format version 1.
//
// A tape is the canonical record of every non-deterministic input that one run consumed: NDJSON, a header line, then one
// record a line, each ended by a newline. Bytes that are too long or not UTF-8 stand in a content-addressed store beside
// it (the tape's path with ".cas" behind it), named by their BLAKE3.
//
// Grammar:
//
//	tape    = header *record
//	header  = {"type":"header","version":1,"harn_version":S,"started_at_unix_ms":N,"script_path":S,"argv":[S…] …}
//	record  = {"type":"record","seq":N,"phase":P,"virtual_time_ms":N,"monotonic_ms":N,"kind":{"kind":K …},"g":N}
//	payload = {"content_hash":H,"text":S} | {"content_hash":H,"len_bytes":N}
//
// docs/reference/tape.md has every key of every kind, in order, with its type and whether it must be there (a test holds it to the
// code), and a producer in Python. corpus/ has good and bad tapes for readers to try themselves on.
//
// Ordering: seq runs from 0 without a gap and is given under the lock that appends, so order on disk is order of seq. g
// is the recorder's global ordinal, shared with chunks and frames that stand in other files.
//
// Durability: NewWriter hands the header to the kernel at once; Append gathers whole lines, Flush hands them to the
// kernel, and RecorderOptions.Sync to the disk. A payload is in its store before the record that names it is appended. A
// process killed at any moment leaves a tape that loads up to its last whole record, with every blob that it names.
//
// Compatibility: names, nesting and key order are fixed. The keys of the format itself are always written; those that
// recordings add only where they are set, and an older reader still loads the tape. Keys and kinds that this package does
// not know are kept as they stood through load and save, and so is an explicit null or zero of an optional key; they are
// the Extra of what they stood in (of a chunk, in its exchange's StreamExtra). A phase other than runtime_finalize is
// read, and saved, as user_script, which the format tells a reader to do. A higher version is refused. A tape in canonical
// form saves to the bytes that were loaded; other white space, another order of keys and other escapes load to the same
// records.
//
// Errors: a line that does not hold what it must ends the reading with a *LoadError, which says where and why. Nothing is
// guessed, and order is not judged.
//
// Memory: readers and writers hold one record and one buffer, never the tape.
//
// Not goals: comparing (package fidelity), capturing (the axes), masking and secrets (package scrub).
package tape
