// Package sessionlog reads and writes session event logs, and folds them into audit snapshots.
//
// Goals: a session log explains what an agent did, for people who must show it afterwards. So whatever a log holds survives
// being read and saved, whoever wrote it; a line that cannot be read says where and why; and what is read is read fast, in
// bounded memory, from whoever wrote it.
//
// Not goals: restoring the state of a session, judging one, hiding secrets (package scrub).
//
// Grammar, of which every JSON value stands on one line or is an element of one list that is the whole log:
//
//	log      = *(entry newline) | "[" entry *("," entry) "]"
//	entry    = envelope | event | record
//	envelope = {"seq":N,"event":event,"g":N,"t_ms":N}
//	event    = {"kind":K,"turn":N …}
//	record   = {"seq":N,"record_type":S …}
//
// Of an envelope "event" must be there, of an event "kind"; any other missing key reads as zero. g and t_ms are written by us:
// the recorder's global ordinal, shared with the tape, and milliseconds since the recording began. tape_seq in an event is the
// record of the tape that it was derived from. Records are what older producers kept in the same file; they are kept, and
// passed over. Blank lines, and line ends of either kind, are kept. An object with an object under "event" is an envelope,
// unless it has a kind of its own and no seq that is a number.
//
// Every kind of the format has a type; the keys of each are its json tags, in the order in which they are written.
// What a kind is (Category, Primitive, Kernel) is told by the kind alone, whether or not a line carries it.
//
// Ordering: seq runs from 0 without a gap over all entries, records too, so order in the file is order of seq. A log in which it does
// not (several producers, a bare log) loads; Order says what is odd. A Dialog puts the events of a conversation in their order.
//
// Snapshot: a Fold is pure. Equal events give equal snapshots, and the snapshot of a prefix folded on with the rest is that of the
// whole. Of a log of lines SnapshotOf parses blocks of lines on several processors; what comes of it is what one pass gives.
//
// Repair: Examine finds what a crash leaves, Findings.WriteCopy closes it in a copy; the log is never changed. A call without a
// result gets one that is an error and says so, where its turn ends: before the next answer, the end of the run or of the log. Of
// results of one call the first stays. A result without a call gets a call without a name before it. A run without an end is
// ended as interrupted, before the next one or at the end, and so is a turn that was cut: nothing is said in the model's name. A
// torn last line is left out. Each event that is made has the code of the finding under "repaired"; every other stands byte
// for byte, and numbers (seq) move with what was added or left out before them. No damage are calls that were denied,
// cancelled, or wait for a suspension, nor an id that is given again in a later turn; calls without an id are let be. Nothing
// is found in a repaired copy.
//
// Writing: AppendEnvelope makes a line; who writes the file gives the numbers, and sees to locks and the disk. A process killed at any
// moment leaves a log that loads up to its last whole entry: a Reader drops what is torn, and says so (Reader.Torn).
//
// Compatibility: an Entry is saved as its bytes stood. An Event that was read is written with the keys that it had: absent, null
// and zero are three things; keys that this package does not know are kept, with their values as they stood, behind those that
// it knows. Of an event of ours the keys of the format are always written, those with a question mark in the format only where
// they are set. Numbers are kept digit by digit: integers within 64 bits are read, others are an error of that event;
// fractions are json.Number. A duplicate of a key that is read is an error, any other is kept. A category and a primitive are
// kept as the line has them. Half of a surrogate pair alone ("\ud800") is no character: an Entry keeps it, in the texts of an
// Event, and so in a snapshot, it is U+FFFD.
//
// Errors: an entry that is none ends the reading with a *LoadError; an event whose known keys hold something else is an
// *EventError when it is asked for, and an entry all the same. Nothing is guessed: a fold leaves such a field out where somebody is told of
// it (FoldOptions.Odd), and else ends.
//
// Memory: a Reader holds one entry (for one of n bytes at most 2n and 256 KiB), of a log of any length and of either form.
// A Fold holds what its snapshot lists, SnapshotOf a few blocks beside; Examine the id of every call.
//
// Limits: MaxEntry bytes an entry; 10,000 levels of nesting, which are followed without recursion; seq and g within 64 bits.
package sessionlog
