// Package files records a work tree as a run found it and what the run changed in it, and puts either back.
//
// A Tree is a snapshot: every directory, regular file and symbolic link under a root, sorted by path, with the contents
// in a content-addressed store. Its JSON form is tree.json, one entry a line:
//
//	{"version":1,"root":"/home/u/app","entries":[
//	{"path":"cmd","mode":"040755"},
//	{"path":"cmd/main.go","mode":"100644","size":812,"blake3":"…"},
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
// Covered is everything but what .gitignore files and .git/info/exclude ignore, files over a size limit, FIFOs, sockets
// and devices, what cannot be read, and the recordings. Each such path is listed in "not_covered", the topmost only. The
// directory .git is covered, so that Git's commands replay, but is never part of a patch. A user's global excludes
// (core.excludesFile) are not consulted: they are not part of the tree. Nor is Git's index: a tracked file that an
// ignore rule matches is listed as ignored.
//
// Two trees give Changes; changes give tape records, a patch that git apply takes forth and back, and can be applied to a
// work tree or taken back, after a check that every path stands as it is expected to. BuildLayer makes the overlay layer
// that shows a recorded tree on top of the directory as it is now.
//
// Safety: a path that came with data is checked before use, every access happens below an open root directory, and
// nothing is written through a symbolic link. A decoder bounds what it allocates. A placeholder never reaches a work tree:
// restoring leaves secret files out, applying refuses them, each by name.
//
// Not goals: owners, access lists, extended attributes, hard links and times are not kept; renames are a delete and an
// add; reads of files are not seen here.
package files
