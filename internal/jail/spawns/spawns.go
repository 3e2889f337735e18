// Package spawns tells of programs that start inside and that somebody talks with through their standard streams, and has something else
// stand there, or start in their place.
//
// Each execve waits until it was looked at, and a Watcher is told of those of a process that somebody
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
// Spawn.Streams takes the process's streams (pidfd_getfd) and makes like ones, which Answer.Stdio puts there
// (SECCOMP_IOCTL_NOTIF_ADDFD) before the program starts: from then on its standard streams lead to the recorder, which copies,
// and neither side sees a difference but these: two pipes' worth of bytes can be under way; descriptors that travel over a
// Unix socket (SCM_RIGHTS) stay behind, and its peer is the recorder. What one process leaves unread in a pipe that it was
// given by itself is there for the next one that is given the same where the recorder lends it (package lend). O_NONBLOCK,
// half-closes and SIGPIPE are as without.
//
// A process that executes again, along PATH or as a launcher does, has its first Key: Spawn.Again.
//
// With Answer.Stub another program starts in place of the one that was asked for: some hundred bytes that wait for their
// exit status. It is executed by a descriptor that is put into the caller, by execveat; for a moment the caller is stopped as a
// debugger would, and its call made that one. Nothing is written into its memory, which after vfork is its parent's, and no path
// has to exist. A program that is traced inside (strace, gdb) cannot be replaced: its execve fails with EIO.
//
// How a process ended is read in /proc while nobody waited for it, and asked of its pidfd afterwards, which Linux 6.15 and newer
// answer. Before that it may stay unknown.
//
// Not told of: what talks through a terminal, a FIFO with a name, or TCP; processes whose descriptors cannot be looked at; far
// ends that are passed on to a process that is no ancestor, or are beyond its first 4,096 descriptors. What could not be
// looked at goes on and is counted (Finder.Lost). A process that changes its descriptors or arguments in another thread
// while it executes can have something else told: evidence, as above.
//
// Not goals: copying what is said (who is told does). On systems other than Linux there are only the types.
package spawns

import "os"

// A Watcher is told of programs that are about to start and that somebody inside talks with through their standard
// input and output. What it sees is evidence, never confinement.
type Watcher interface {
	// Spawning is told of an execve while it waits; the call may still fail. It is called by one goroutine at a time and
	// must not block for long: every other notified call inside waits. nil lets the call go on as it is. s and what was
	// taken from it stay valid.
	Spawning(s *Spawn) *Answer
}

// A Spawn is one execve of a process that somebody talks with. See "Spawns" in the package comment for which those are.
type Spawn struct {
	PID  int      // of the process, as the recorder's PID namespace knows it
	Own  int      // the same, as it knows it itself
	Path string   // the program, as the call spells it; what stands there may not exist
	Argv []string // at most 1,024, of 128 KiB in all; what is more is left out
	Env  []string // what the call gives it as variables, NAME=VALUE; at most 1,024, of 1 MiB in all
	Dir  string   // working directory, as the program sees it; empty where it cannot be told

	// Key is one for all that one process executes with what an answer gave it, and no other's.
	Key uint64
	// Again says that the standard streams are already those that an earlier answer of this Key put there: this is the next
	// try along PATH, or the program that a shell or a launcher became.
	Again bool
	// InputOnly says that nobody reads what it writes who gives it its input: its Streams are that of standard input alone.
	InputOnly bool

	talk *talk
}

// Streams are the ways between a process and who talks with it, by descriptor: 0, 1 and 2. Where two descriptors are one
// stream (a socket for both directions, 2>&1) they are the same *os.File. nil stands for what is not to be changed: a
// standard error that is closed or a terminal. All are the receiver's of Spawn.Streams.
type Streams struct {
	Far  [3]*os.File // what stood there, so towards who talks: 0 is read, 1 and 2 are written
	Near [3]*os.File // the recorder's ends of Put: 0 is written, 1 and 2 are read
	Put  [3]*os.File // for Answer.Stdio: of the same type as what stood there, pipe or socket
}

// A Answer says what becomes of an execve.
type Answer struct {
	// Stdio are put at 0, 1 and 2 before the call goes on; nil leaves what stands there. They are closed here afterwards.
	Stdio [3]*os.File
	// Stub makes a process start that does nothing but wait, in place of the program, whether or not that exists: it reads one
	// byte from its standard input and ends with it as its exit status, or with 0 at the end of file. It has the arguments,
	// the environment and the PID that the program would have. Should the process execute anything else before that, it is
	// the stub again, and nobody is told.
	Stub bool
	// Failed, if given, is told that the answer could not be carried out; it must not block. The caller is gone then, or its
	// execve fails with EIO. Streams may or may not have been put.
	Failed func(error)
}
