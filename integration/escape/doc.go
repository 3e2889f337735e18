// Command escape lets a hostile program loose inside the jail and says what it reached:
//
//	go run ./integration/escape            every try, as the present user and, as root, also as uid 65534
//	go run ./integration/escape -docs F    writes the table of tries into F (docs/security.md); go generate does
//
// A row of the table is one way out: what is tried, how it is refused, and the function that tries it. The tests (build
// tag escape), the printed table and the one in docs/security.md are all made from these rows. Each is tried by this
// executable, run inside by the real `tapedeck record` and then `tapedeck replay`, and once more by a program with a
// terminal.
//
//	escape ── tapedeck record ──> jail: escape inside ──one process a row──> escape try ROW
//	   └── what must not be reached: listeners, sockets, files, a victim process, a cgroup, all made here, outside
//
// A try is harmless should it succeed: it aims at nothing but what this command made, rewrites a setting with the value
// that it has, gives a privileged call arguments that fail later, with another error. The outcome counts both as the try
// saw it and as what was aimed at did.
//
// A row may say that it is expected to get out: what cannot be held is listed, not hidden, and one that is held all of a
// sudden fails as well, so that the documents stay true.
//
// Exit status: 0 all as the table says, 2 something got out (or did no longer), 1 it could not be tried.
//
//go:generate go run . -docs ../../docs/security.md
package main
