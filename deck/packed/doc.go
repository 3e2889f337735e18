// Package packed reads and writes the packed form of a recording: one compressed file that any machine can hold, send
// and list.
//
// Goals: the same recording gives the same bytes, whoever packs it, where and when; a reader trusts nothing that a file
// says; tar and zstd of any system can list and take out what is inside; who has it elsewhere reads an entry, or a record of its tape, without
// the rest. Not goals: packing several recordings, adding to a packed file.
//
// Grammar:
//
//	file    = 1*frame [table], the frames' contents together being stream
//	frame   = a zstd frame (RFC 8878) with a checksum, no dictionary and a window of at most 8 MiB
//	stream  = index *entry end
//	index   = the entry "pack.json": {"format":1,"id":S,"state":S,"files":N,"bytes":N} and a newline
//	entry   = header content padding
//	header  = 512 bytes of ustar (POSIX.1-1988): name, mode 0644, ids 0, size, time 0, checksum, type 0, device 0, no other field
//	content = size bytes
//	padding = zero bytes up to a multiple of 512
//	end     = 1024 zero bytes
//	table   = *part root
//	part    = a skippable frame (RFC 8878) of {"pages":false,"nodes":[…]}
//	root    = a skippable frame of {"pages":B,"nodes":[…]}, its length in four bytes, the last first, and "tapedeck"
//
// A file of one frame has no table, and neither have those of older versions. A node is one frame: where it lies, its BLAKE3, and which entry
// it begins with; the nodes of a root that has pages are parts of 256 frames each. A frame begins with a header, or within the content of an
// entry: in run.tape with a record, whose number the node has; such a frame holds nothing
// else. Who has the BLAKE3 of what root holds can check all that a View fetches.
//
// files is the number of entries behind the index, bytes the sum of their sizes. A size of 8 GiB or more stands in the
// binary form that GNU tar, libarchive and Go read. The index is no part of the recording: taking the file apart with tar
// leaves it beside the rest.
//
// A name is one to eight components of a-z, 0-9, '.', '_' and '-' with '/' between them, at most 100 bytes; a component
// begins and ends with a letter or a digit. So no name is absolute, climbs, hides, or is another's in other case. A file
// in a directory whose name ends in ".cas" is a blob: its name is the BLAKE3 of its content.
//
// Ordering: entries stand in ascending order of their names, byte by byte, none twice.
//
// Compatibility: there is one stream for one recording: a header that differs in a single byte from the one that a Writer
// makes for the same name and size is refused, and so is anything behind the end, and a table that a Writer does not make for these frames. The frames depend on the version of tapedeck
// and of its zstd encoder: two versions may compress the same stream to different bytes. A higher format is refused; versions before the table
// refuse a file that has one.
//
// Errors: ErrNotPacked for a file of another kind, a *LimitError for one that declares more than the caller takes,
// ErrDamaged for everything else that does not hold, a file cut short too.
//
// Memory: both directions hold one zstd window and one buffer, never an entry; and of each frame its node. A View holds a few frames, compressed.
package packed
