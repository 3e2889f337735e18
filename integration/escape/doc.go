// Package escape lets a hostile program loose inside the jail and says what it reached:
//
//	go test -v -tags escape ./integration/escape               every try, as the present user and, as root, also as uid 65534
//	go test -v -tags escape ./integration/escape -only TEXT    rows whose name holds TEXT
//
// A row of the table is one way out: what is tried, how it is refused, and the function that tries it. The tests and the table in
// docs/reference/jail.md are made from these rows (go generate). Each is tried by the test's executable, run inside by the real
// `tapedeck record` and then `tapedeck replay`, and once more by a program with a terminal.
//
//	escape ── tapedeck record ──> jail: escape inside ──one process a row──> escape try ROW
//	   └── what must not be reached: listeners, sockets, files, a victim process, a cgroup, all made here, outside
//
// A try is harmless should it succeed: it aims at nothing but what this test made, rewrites a setting with the value
// that it has, gives a privileged call arguments that fail later, with another error. The outcome counts both as the try
// saw it and as what was aimed at did.
//
// A row may say that it is expected to get out: what cannot be held is listed, not hidden, and one that is held all of a
// sudden fails as well, so that the documents stay true.
//
// TAPEDECK_LONG=1 also records with --isolated, and tries what is bounded by a count, as processes are, to its bound.
//
//go:generate env TAPEDECK_UPDATE=1 go test -tags escape -run ^TestDocs$ .
package escape
