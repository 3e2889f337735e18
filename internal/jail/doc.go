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
//	recorder  starts the init: Prepare, long before the program is known, or Start
//	init      makes its mounts private and a fresh /proc, which most often cannot be had, and waits
//	recorder  plans the mounts on the host's tree and hands the plan over
//	init      makes mounts, routes and sockets, hands the sockets out
//	exec      drops every capability, installs the filter, hands its listener out, tries one notification
//	recorder  Start returns; Release lets the exec stage become the program
//
// What confines is the kernel: namespaces, read-only mounts, no capability, no_new_privs, and a filter whose refusals
// need nobody to answer. Notifications (Refusals) are evidence of what was tried, never confinement. Connects, and pairs of Unix
// datagram sockets, are the exception: they need the recorder, for a Unix socket that has a path is reached from every network
// namespace. Without it they fail.
//
// # Connects
//
// The recorder reads the address of a connect once and connects the program's own socket (pidfd_getfd) to it. What a path means is
// looked up from the program's own root and working directory; what stands there must be a socket that the jail's network namespace,
// or that of the program's socket, says is bound to this file, or lie in a file system that the host has not mounted. Where the
// recorder fails the connect does. At most 512 wait at once, fewer where the recorder may have few descriptors, and others fail with
// EAGAIN; a signal does not end one, but the end of its caller does (not while it waits for room in a Unix socket's backlog). SO_PEERCRED
// of such a connection has the program's ids and 0 for its process. A program whose memory cannot be read connects to nothing.
// There are no Unix datagram sockets (ESOCKTNOSUPPORT); a pair of them is a pair of SOCK_SEQPACKET.
//
// # Watched files
//
// With Config.Watch each call that may change a file below a writable directory or an overlay waits until the Watcher was
// told of it: opens that ask for writing, making or cutting, openat2, creat, truncate, renames, links, removals, mkdir,
// mknod, symlink, bind of a Unix socket, and changes of mode, owner or times by path, fchmod by its descriptor too. An open
// for reading is not notified and costs nothing.
//
// Paths are told as the program sees them but without links: what it spells by "..", a link, a descriptor, /proc/self/fd
// or from within a sandbox of its own (another root, other mounts) is told by its name in the jail. A file of O_TMPFILE is
// told of when it gets its name. A call may be told of twice, where a signal made it start again.
//
// Not told of: what happens to a file after its open (write, mmap, ftruncate, fallocate), owners, times and attributes that
// are set by descriptor (fchown, futimens) and extended attributes; what processes outside change; a core dump, which the
// kernel writes; a write to a file of which another hard link was removed while it was open; what lies in memory only
// (/dev/shm, a tmpfs that a nested sandbox mounts). Calls whose paths cannot be read or named go on and are counted
// (Jail.Unnamed): those of a program whose file is another user's and cannot be read, and what a nested sandbox changes
// through an overlay of its own or through mounts that stand nowhere.
//
// This is evidence. The kernel reads the path again after us, so a program that changes it in its memory, or swaps links
// and directories meanwhile, or hands directories of one mount namespace to a process of another, can have its own change
// go unseen, or another file told of that it could have named as well.
// It cannot make the recorder open anything but O_PATH descriptors, nor these anywhere but in the program's own tree, nor
// wait for a FIFO, a device, or a page of its memory that it withholds (userfaultfd, where a kernel lets users hold up more
// than themselves, is refused), nor walk on for ever. A file system inside that does not answer, of a network say,
// holds up every call that changes files, not only those to itself.
//
// A FIFO that is older than the jail is not opened for writing (EACCES), but in an overlay: its other end is the host's. This keeps
// ordinary programs from it and is no confinement, for the kernel reads the path again after us: who swaps files while it is opened,
// or in a mount namespace of its own has it in a mount that stands nowhere, writes to it.
//
// Where programs' memory cannot be read (kernel.yama.ptrace_scope is 3, a security module) there is no jail.
//
// # Spawns
//
// With Config.Spawns each execve waits until it was looked at, and a SpawnWatcher is told of those of a process that somebody
// talks with. That is so where what stands at its 0 and 1 are pipes or Unix stream sockets, and
//
//   - neither is one of the program's own streams, or one that the parent has as its own 0, 1 or 2: what a shell or a launcher
//     runs with its own streams is part of that talk;
//   - one process, the parent or an ancestor, writes what it reads and reads what it writes, as far as these are pipes: in a
//     pipeline or a substitution those are two. Who has the other end of a socket cannot be told.
//
// Where only the first holds, of its standard input, and the parent writes what it reads, or nobody does any more, that input alone is told of (Spawn.InputOnly).
//
// So servers are told of that a client starts, and commands whose output somebody gathers after having given them input, but
// not pipelines, loops, and what inherits. The look costs a context switch and, mostly, one readlink.
//
// Spawn.Streams takes the process's streams (pidfd_getfd) and makes like ones, which SpawnAnswer.Stdio puts there
// (SECCOMP_IOCTL_NOTIF_ADDFD) before the program starts: from then on its standard streams lead to the recorder, which copies,
// and neither side sees a difference but these: two pipes' worth of bytes can be under way; descriptors that travel over a
// Unix socket (SCM_RIGHTS) stay behind, and its peer is the recorder. What one process leaves unread in a pipe that it was
// given by itself is there for the next one that is given the same where the recorder lends it (package lend). O_NONBLOCK,
// half-closes and SIGPIPE are as without.
//
// A process that executes again, along PATH or as a launcher does, has its first Key: Spawn.Again.
//
// With SpawnAnswer.Stub another program starts in place of the one that was asked for: some hundred bytes that wait for their
// exit status. It is executed by a descriptor that is put into the caller, by execveat; for a moment the caller is stopped as a
// debugger would, and its call made that one. Nothing is written into its memory, which after vfork is its parent's, and no path
// has to exist. A program that is traced inside (strace, gdb) cannot be replaced: its execve fails with EIO.
//
// How a process ended is read in /proc while nobody waited for it, and asked of its pidfd afterwards, which Linux 6.15 and newer
// answer. Before that it may stay unknown.
//
// Not told of: what talks through a terminal, a FIFO with a name, or TCP; processes whose descriptors cannot be looked at; far
// ends that are passed on to a process that is no ancestor, or are beyond its first 4,096 descriptors. What could not be
// looked at goes on and is counted (Jail.SpawnsLost). A process that changes its descriptors or arguments in another thread
// while it executes can have something else told: evidence, as above.
//
// # Inputs
//
// With Config.Inputs the recorder answers for what processes ask the kernel that no two runs get alike: clock_gettime, gettimeofday, time,
// getrandom, and (Source.Asked) what the machine is like at the moment: opens of certain files of /proc by a path from the root, statfs,
// sysinfo, statx as stat and ls -i make it. At each execve the caller is stopped for a moment, as a debugger would, before the new
// program's first instruction: the functions of its vDSO get code that makes these calls (package vdso), again after a signal (EINTR), and its
// AT_RANDOM bytes are replaced; then it goes on, and nothing stays traced. Where the vDSO is not known AT_SYSINFO_EHDR of its auxiliary
// vector becomes AT_IGNORE: the C library, Go and others make the calls themselves then. Addresses are not randomised. An open of
// /dev/random or /dev/urandom by that path gives a pipe of its own that the recorder fills.
//
// The monotonic clock of Go programs and of large runtimes, which read it all the time, is the kernel's: their functions make the call for
// the wall time alone. Where a clock that is given lies behind the kernel's (Config.Shifted), waits for a moment of it (futex, mutexes with
// priority inheritance, clock_nanosleep, timerfd_settime and timer_settime with an absolute time, mq_timedsend and mq_timedreceive) are made
// again with another one, which is written below the stack of the thread, where nobody keeps anything. A process that ends by itself may be held up at its exit_group
// (Source.Ending); its files are open until it goes on.
//
// A process is known by its threads. A fork is a process of its own from the first time that it asks; its parent is who forked it. A
// thread of Python or Ruby is like a fork, and so are together all threads but the first of others than Go. Of these others each
// question comes with a place: a digest of how the thread came to ask (internal/unwind), for which its stack is read while it waits
// for the answer. A program that a debugger inside has started cannot be stopped, asks the kernel, and is counted (Jail.Untraced).
// rdtsc and rdrand are the processor's own.
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
