// Package jail runs one unmodified program in namespaces of its own, without root and with its recorder outside.
//
// Start makes user, network, mount, PID, UTS and IPC namespaces and starts the program in them; the recorder keeps the
// sockets that live inside. Every address and, through them, every name reaches those sockets: nothing else is there to
// be reached.
//
//	recorder ── control socket ──> init (PID 1 inside) ──fork──> exec stage ──execve──> program
//	    └────── listeners, DNS, packet socket, seccomp notifications <── handed out by SCM_RIGHTS
//
// The init is the recorder's own executable, started again, and the exec stage its child: Enter must be the first call of main and
// of TestMain. Package stage has the order of a start.
//
// What confines is the kernel: namespaces, read-only mounts, no capability, no_new_privs, and a filter whose refusals
// need nobody to answer. Notifications (Refusals) are evidence of what was tried, never confinement. Connects, and pairs of Unix
// datagram sockets, are the exception: they need the recorder, for a Unix socket that has a path is reached from every network
// namespace. Without it they fail.
//
// # Rooms
//
// The rest is in rooms, each of which decides one thing:
//
//	stage    what is made inside before the program is there      mount    what tree of files it sees
//	filter   which calls pass, fail, or wait for the recorder      network  where its packets go
//	changes  what a call is about to change                        spawns   who is talked with, and what starts in its place
//	connect  which sockets may be connected to                     inputs   what time and randomness it is given
//
// Those of the calls share one table of the processes inside (process) and are served by notify, which receives and answers calls, trace,
// which stops a thread for a moment, and inspect, which reads what a call means. The supervisor in this package knows whose each call is.
//
// # Lifetime and what else holds inside
//
// Lifetime: the init ends when the recorder's end of the control socket closes, and the kernel ends everything in the
// PID namespace with it. So Close, a killed recorder and a program that leaves daemons behind all end the same way. When
// the program ends by itself, what is left of its processes is killed before Wait returns.
//
// Inside, the user and group ids are the caller's. A root caller's program is uid 0 with no capability: it cannot open
// what another user's file mode forbids. setuid programs gain nothing, 32-bit programs are killed with SIGSYS, io_uring
// is absent, the kernel's log cannot be read. User namespaces may be nested, as browsers and sandboxes do: they give
// capabilities over new namespaces only, the mounts and the network that they start from stay locked; namespaces of control
// groups cannot be made. (A uid 0 without capabilities cannot map an id in a nested one.)
//
// Each writable directory, each overlay and each mount below one is a mount of its own: a rename or a link from one to another fails with
// EXDEV, where programs copy. What is masked cannot be renamed or removed: EBUSY.
//
// For a caller who is not root, an overlay over a tree with mounts in it, such as a HOME with a FUSE mount, is split:
// directories above a mount are real ones, and each of their other directories is an overlay of its own. So EXDEV and
// EBUSY hold between and for these, and a directory of theirs has the caller as its owner. Files beside them are copied:
// without hard links and extended attributes, and under the mount flags (noexec) of the file system that holds Upper.
// Those over 64 MiB, those that would exceed 1 GiB in all and those that cannot be read are read-only: see NotCovered. A
// directory above a mount that the caller may not list or enter is shown as it is, read-only, with the mounts in it.
//
// A program on a terminal is a job of the init's session, which has the terminal: Ctrl-Z stops it, and Stopped tells. Without
// one it has a session of its own.
//
// A program's signal dispositions are the defaults, but SIGHUP and SIGINT stay ignored where the recorder's caller
// ignored them (nohup, background jobs). Its descriptors are 0, 1 and 2.
//
// Not goals: answering anything (axis/network does), several programs in one jail, resource limits but for the number
// of processes. On systems other than Linux every function answers with an *UnavailableError.
package jail
