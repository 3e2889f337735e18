// Package annotations reads, checks and writes what people say about the events of a tape: the sidecar that stands beside it,
// the tape's path with Suffix behind it.
//
// # Grammar
//
//	sidecar    = header *( annotation | comment | blank )
//	header     = {"type":"header","schema_version":1,"tape_path":S,"tape_content_hash":H,"harn_version":S}
//	annotation = {"type":"annotation","id":S,"event_id":N,"kind":K,"evidence":S,"author":{"id":S,"kind":S,"surface":S},
//	              "timestamp":T …}
//	comment    = a line that begins with #
//
// event_id is the seq of a record. Optional, in this order where we write them: suggested_fix (any JSON), span
// {start_event_id, end_event_id}, hypothesis_status (which a hypothesis must have), friction_kind (which a friction must have),
// links [{label, url, reference}], metadata (any JSON). H is the BLAKE3 of the tape's bytes, T a time in RFC 3339.
//
// Reading takes what has the form of the lines above and leaves what it means to Validate: an annotation without an id, or of
// an event that the tape lacks, is read, shown and reported as a Problem. A kind that this package does not know reads as
// KindUnknown and keeps its name. Keys that it does not know stay in the file, for nothing here ever writes a line again.
//
// # Durability
//
// Append adds whole lines with one write each, under a lock that other processes see, and syncs the file. A process that is
// killed in the middle leaves a torn last line, which a reader drops and says so, and the next Append takes away.
//
// Compatibility: a higher schema_version is refused. Memory: all annotations of one sidecar, each line of at most MaxLine
// bytes; of the tape nothing but what was asked of it.
//
// Not goals: judging. An annotation changes no verdict, whatever it says; it is shown where the event is shown.
package annotations
