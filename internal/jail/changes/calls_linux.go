package changes

import (
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

// A kind is a system call that changes files: which of these calls the filter notifies, and where their paths
// stand.
type kind struct {
	op    Op
	paths []pathArg
	flags flagKind
	at    int // the argument that flags stand in
	when  condition
}

// A pathArg says which arguments make a path.
type pathArg struct {
	dir  int // descriptor of the directory that a relative path starts from, or inCwd
	path int // pointer to the path, or ofFD: the descriptor itself is the file
	end  inspect.Ending
}

const (
	inCwd = -1
	ofFD  = -1
)

// A condition is what a filter can see in the arguments.
type condition int

const (
	always    condition = iota
	ifWriting           // flags ask for writing, making or cutting
	ifPointer           // the first path is not null: without one the descriptor is the file, as in futimens
)

// A flagKind says how a call's flags change what it does.
type flagKind int

const (
	noFlags     flagKind = iota
	openFlags            // O_NOFOLLOW, O_CREAT|O_EXCL
	openHow              // a pointer to them
	atFlags              // AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
	unlinkFlags          // AT_REMOVEDIR
	renameFlags          // RENAME_EXCHANGE
	linkFlags            // AT_SYMLINK_FOLLOW, AT_EMPTY_PATH
	sockAddr             // no flags: the path is in a struct sockaddr_un, its length in the argument
)

// kinds are the calls of every processor; init adds those that this one alone has.
var kinds = map[uint32]*kind{
	unix.SYS_OPENAT:       {OpOpen, []pathArg{{0, 1, inspect.TheFile}}, openFlags, 2, ifWriting},
	unix.SYS_OPENAT2:      {OpOpen, []pathArg{{0, 1, inspect.TheFile}}, openHow, 2, always},
	unix.SYS_TRUNCATE:     {OpTruncate, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
	unix.SYS_RENAMEAT2:    {OpRename, []pathArg{{0, 1, inspect.TheName}, {2, 3, inspect.TheName}}, renameFlags, 4, always},
	unix.SYS_UNLINKAT:     {OpUnlink, []pathArg{{0, 1, inspect.TheName}}, unlinkFlags, 2, always},
	unix.SYS_LINKAT:       {OpLink, []pathArg{{0, 1, inspect.TheName}, {2, 3, inspect.TheName}}, linkFlags, 4, always},
	unix.SYS_SYMLINKAT:    {OpSymlink, []pathArg{{1, 2, inspect.TheName}}, noFlags, 0, always},
	unix.SYS_MKDIRAT:      {OpMkdir, []pathArg{{0, 1, inspect.TheName}}, noFlags, 0, always},
	unix.SYS_MKNODAT:      {OpMknod, []pathArg{{0, 1, inspect.TheName}}, noFlags, 0, always},
	unix.SYS_FCHMOD:       {OpMode, []pathArg{{0, ofFD, inspect.TheFile}}, noFlags, 0, always},
	unix.SYS_FCHMODAT:     {OpMode, []pathArg{{0, 1, inspect.TheFile}}, noFlags, 0, always},
	unix.SYS_FCHMODAT2:    {OpMode, []pathArg{{0, 1, inspect.TheFile}}, atFlags, 3, always},
	unix.SYS_FCHOWNAT:     {OpOwner, []pathArg{{0, 1, inspect.TheFile}}, atFlags, 4, always},
	unix.SYS_UTIMENSAT:    {OpTimes, []pathArg{{0, 1, inspect.TheFile}}, atFlags, 3, ifPointer},
	unix.SYS_SETXATTR:     {OpAttrs, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
	unix.SYS_LSETXATTR:    {OpAttrs, []pathArg{{inCwd, 0, inspect.TheLink}}, noFlags, 0, always},
	unix.SYS_FSETXATTR:    {OpAttrs, []pathArg{{0, ofFD, inspect.TheFile}}, noFlags, 0, always},
	unix.SYS_REMOVEXATTR:  {OpAttrs, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
	unix.SYS_LREMOVEXATTR: {OpAttrs, []pathArg{{inCwd, 0, inspect.TheLink}}, noFlags, 0, always},
	unix.SYS_FREMOVEXATTR: {OpAttrs, []pathArg{{0, ofFD, inspect.TheFile}}, noFlags, 0, always},
	unix.SYS_BIND:         {OpBind, []pathArg{{inCwd, 1, inspect.TheName}}, sockAddr, 2, always},
}

// Flags of an open: those that may change a file, and those with which no file that has a name is changed.
const (
	WriteFlags  = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC
	noNameFlags = unix.O_PATH | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// Rules notify the calls that change files. With O_PATH nothing else counts, and what O_TMPFILE makes has no name until linkat gives it
// one.
func Rules() []filter.Rule {
	var opens, rest []filter.Rule
	for _, nr := range slices.Sorted(maps.Keys(kinds)) {
		switch c := kinds[nr]; c.when {
		case ifWriting:
			writing := [][]filter.Condition{{filter.Bits(c.at, WriteFlags), filter.NoBits(c.at, noNameFlags)}}
			opens = append(opens, filter.Rule{Nr: nr, When: writing, Then: filter.Notify, Else: filter.Allow})
		case ifPointer:
			named := [][]filter.Condition{{filter.NotNull(c.paths[0].path)}}
			rest = append(rest, filter.Rule{Nr: nr, When: named, Then: filter.Notify, Else: filter.Allow})
		default:
			rest = append(rest, filter.Rule{Nr: nr, Then: filter.Notify})
		}
	}
	return append(opens, rest...)
}

// Mkdirs are the calls that make a directory, by the argument that has its path; the next one has its mode.
func Mkdirs() map[uint32]int {
	out := make(map[uint32]int)
	for nr, k := range kinds {
		if k.op == OpMkdir {
			out[nr] = k.paths[0].path
		}
	}
	return out
}
