package jail

import (
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
)

// A Watcher is told of calls that change files, while they wait. What it sees is evidence, never confinement.
type Watcher interface {
	// Changing is told of a call that may change files, before the kernel carries it out; the call may still fail. It is
	// called by one goroutine at a time and must not block for long: every other such call inside waits. then, when not
	// nil, is run on a goroutine of its own. The call goes on when both have returned, or fails in the program with EIO
	// where one gave an error. c and its descriptors are valid until then.
	Changing(c *FileCall) (then func() error, err error)
}

// A FileOp is what a call does to its paths.
type FileOp int

// The operations. Where nothing else is said a call has one path.
const (
	OpOpen     FileOp = iota + 1 // may write to the file, make it or cut it: open, openat, openat2, creat
	OpTruncate                   // truncate
	OpRename                     // two paths, old and new; what the new one named goes
	OpExchange                   // two paths, which change places
	OpLink                       // two paths: the file (a FilePath without Dir where it has no name yet) and its new name
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

var fileOpNames = [...]string{"", "open", "truncate", "rename", "exchange", "link", "unlink", "rmdir", "mkdir", "symlink",
	"mknod", "mode", "owner", "times", "attributes", "bind"}

// String returns the operation's name: "open", "rename".
func (op FileOp) String() string {
	if op <= 0 || int(op) >= len(fileOpNames) {
		return "unknown"
	}
	return fileOpNames[op]
}

// A FileCall is one call that may change files.
type FileCall struct {
	Op    FileOp
	Cuts  bool // the file is cut to no bytes by an open, or to any length
	PID   int  // of the thread, as the recorder's PID namespace knows it
	Paths []inspect.FilePath
}
