// Package files records a work tree as a run found it and what the run changed in it, there and elsewhere, and puts either
// back.
//
// A Tree is a snapshot: every directory, regular file, symbolic link and FIFO under a root, sorted by path, with the contents
// in a content-addressed store. Its JSON form is tree.json, one entry a line:
//
//	{"version":1,"root":"/home/u/app","entries":[
//	{"path":"cmd","mode":"040755"},
//	{"path":"cmd/main.go","mode":"100644","size":812,"blake3":"…","mtime_ns":1763800000000000000},
//	{"path":"cmd/.env","mode":"100600","size":40,"blake3":"…","secret":"…"},
//	{"path":"latest","mode":"120777","target":"cmd/main.go"}
//	],"not_covered":[
//	{"path":"node_modules","reason":"ignored"}
//	]}
//
// A path is relative to the root, with "/", its parent is an entry before it. "mode" is the octal st_mode: the type and
// twelve permission bits, of which Git's 100644, 100755 and 120000 are the short form. "blake3" and "size" are those of
// the stored bytes. "secret" marks a file in which a secret was found, or that holds credentials: it is the keyed digest
// of the true bytes, and the stored bytes are the scrubbed form: of a file that holds credentials a single placeholder. Names that are not UTF-8 stand with U+FFFD for each
// byte that is none, and "raw" holds their true bytes: {"path":"<base64>"}.
//
// Covered is everything but what .gitignore files and .git/info/exclude ignore, files over a size limit, sockets
// and devices, what cannot be read, and the recordings. Each such path is listed in "not_covered", the topmost only. The
// directory .git is covered, so that Git's commands replay, but is never part of a patch. A user's global excludes
// (core.excludesFile) are not consulted: they are not part of the tree. Nor is Git's index: a tracked file that an
// ignore rule matches is listed as ignored.
//
// A partial tree ("partial":true behind the root) names some paths of a directory and says nothing of the others: what a run
// found where it changed something. Behind the rest it may have "absent":[{"path":"…"}], the topmost paths at which nothing
// stood. The directories that lead to a path are entries.
//
// A Journal is told of each call that may change files, before it is carried out, and keeps what stands at its paths: the
// pre-image, of the work tree only what its snapshot does not have already. A barrier then gives a record for each path at which
// something else stands than at the barrier before, in order of the records' paths, and before them one for each state that a call
// ended in between (Touch.Ends). At the end the snapshot of the work tree decides, so that a call that was not told of is told of all the same. What it
// does with:
//
//	a directory that is renamed   what lies below is kept first, then deleted there and written here; over a bound it is
//	                              listed (too_many); what the run made itself need not be kept
//	RENAME_EXCHANGE               the same, both ways
//	a hard link of the run        what is written through one name is told of all
//	an older hard link            told of the name that was written through, which is listed (linked); the others are not seen
//	O_TMPFILE and linkat          a new file at its name
//	mmap, inherited descriptors   a file that was opened for writing is looked at at every barrier until a lease shows that
//	                              nobody can write to it any more; where no lease is to be had, to the end
//	a file deleted while open     deleted; what is written to it afterwards is in no tree and on no tape
//	a file over 8 MiB, held open  read again only where its size, times or inode moved; what a mapping writes may move them late
//	a file over the limit         listed (too_large); it is never read, so that a sparse one costs nothing
//	FIFO                          never opened; told as a path without content
//	socket, device                never opened; listed (special) while it stays
//	a descriptor from before the run, another namespace, a server outside    not seen, but in the work tree's snapshots
//
// A touch is evidence of what a program does, never a hindrance. The memory of a Journal grows with the number of paths, by
// about 400 bytes each, not with contents: long ones are read piece by piece, but for those that are compressed, which are looked
// into as a whole, one at a time.
//
// Two trees give Changes; changes give tape records, a patch that git apply takes forth and back, and can be applied to a
// work tree or taken back, after a check that every path stands as it is expected to. BuildLayer makes the overlay layer
// that shows a recorded tree, whole or partial, on top of the directory as it is now; BuildOrder one below all, which keeps the
// order in which its directories list their names.
//
// Safety: a path that came with data is checked before use, every access happens below an open root directory, and
// nothing is written through a symbolic link. A decoder bounds what it allocates. A placeholder never reaches a work tree:
// restoring leaves secret files out, applying refuses them, each by name.
//
// Times: "mtime_ns" is when a path was last written, in ns since the epoch, where that was asked for; behind the root it is the
// root's. It compares nowhere; Restore and layers give it back, for build tools go by it, Apply does not: what it writes is new.
//
// Attributes: "xattrs" are the extended attributes user.* of a file or directory, values in base64; of one that holds a secret the
// value is null, and nothing puts it back.
//
// Not goals: owners, access lists, other attributes, hard links and other times are not kept; renames are a delete and an
// add; reads of files are not seen here.
package files
