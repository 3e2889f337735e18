// Package changes tells of the calls of a jail's program that change files, while they wait: which calls those are, what each is about to
// change, and which of it is the program's to change.
//
// With a Watcher each call that may change a file below a writable directory or an overlay waits until the Watcher was
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
// (Watch.Unnamed): those of a program whose file is another user's and cannot be read, and what a nested sandbox changes
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
// Not goals: keeping what is changed (the Watcher does). On systems other than Linux there are only the types.
package changes

import "github.com/tapedeck-dev/tapedeck/internal/jail/inspect"

// A Watcher is told of calls that change files, while they wait. What it sees is evidence, never confinement.
type Watcher interface {
	// Changing is told of a call that may change files, before the kernel carries it out; the call may still fail. It is
	// called by one goroutine at a time and must not block for long: every other such call inside waits. then, when not
	// nil, is run on a goroutine of its own. The call goes on when both have returned, or fails in the program with EIO
	// where one gave an error. c and its descriptors are valid until then.
	Changing(c *Call) (then func() error, err error)
}

// A Op is what a call does to its paths.
type Op int

// The operations. Where nothing else is said a call has one path.
const (
	OpOpen     Op = iota + 1 // may write to the file, make it or cut it: open, openat, openat2, creat
	OpTruncate               // truncate
	OpRename                 // two paths, old and new; what the new one named goes
	OpExchange               // two paths, which change places
	OpLink                   // two paths: the file (a FilePath without Dir where it has no name yet) and its new name
	OpUnlink
	OpRmdir
	OpMkdir
	OpSymlink // the path is the new link's
	OpMknod
	OpMode
	OpOwner
	OpTimes
	OpAttrs // extended attributes
	OpBind  // a Unix socket's file is made
)

// A Call is one call that may change files.
type Call struct {
	Op    Op
	Cuts  bool // the file is cut to no bytes by an open, or to any length
	PID   int  // of the thread, as the recorder's PID namespace knows it
	Paths []inspect.FilePath
}
