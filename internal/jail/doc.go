// Package jail runs one unmodified program in namespaces of its own, without root and with its recorder outside.
//
// Start makes user, network, mount, PID, UTS and IPC namespaces and starts the program in them; the recorder keeps the
// sockets that live inside. Every address and, through them, every name reaches those sockets: nothing else is there to
// be reached.
//
//	recorder ── control socket ──> init (PID 1 inside) ──fork──> exec stage ──execve──> program
//	    └────── listeners, DNS, packet socket, seccomp notifications <── handed out by SCM_RIGHTS
//
// The init and the exec stage are the recorder's own executable, started again: Enter must be the first call of main and
// of TestMain. The order of a start:
//
//	recorder  plans the mounts on the host's tree and starts the init
//	init      makes mounts, routes and sockets, hands the sockets out
//	exec      drops every capability, installs the filter, hands its listener out, tries one notification
//	recorder  Start returns; Release lets the exec stage become the program
//
// What confines is the kernel: namespaces, read-only mounts, no capability, no_new_privs, and a filter whose refusals
// need nobody to answer. Notifications (Refusals) are evidence of what was tried, never confinement.
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
// Each writable directory and each overlay is a mount of its own: a rename or a link from one to another fails with
// EXDEV, where programs copy. What is masked cannot be renamed or removed: EBUSY.
//
// For a caller who is not root, an overlay over a tree with mounts in it, such as a HOME with a FUSE mount, is split:
// directories above a mount are real ones, and each of their other directories is an overlay of its own. So EXDEV and
// EBUSY hold between and for these, and a directory of theirs has the caller as its owner. Files beside them are copied:
// without hard links and extended attributes, and under the mount flags (noexec) of the file system that holds Upper.
// Those over 64 MiB, those that would exceed 1 GiB in all and those that cannot be read are read-only: see NotCovered.
//
// A program's signal dispositions are the defaults, but SIGHUP and SIGINT stay ignored where the recorder's caller
// ignored them (nohup, background jobs). Its descriptors are 0, 1 and 2.
//
// Not goals: answering anything (axis/network does), several programs in one jail, resource limits but for the number
// of processes. On systems other than Linux every function answers with an *UnavailableError.
package jail
