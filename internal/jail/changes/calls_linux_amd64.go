package changes

import (
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

func init() {
	for nr, c := range map[uint32]*kind{
		unix.SYS_OPEN:      {OpOpen, []pathArg{{inCwd, 0, inspect.TheFile}}, openFlags, 1, ifWriting},
		unix.SYS_CREAT:     {OpOpen, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
		unix.SYS_RENAME:    {OpRename, []pathArg{{inCwd, 0, inspect.TheName}, {inCwd, 1, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_RENAMEAT:  {OpRename, []pathArg{{0, 1, inspect.TheName}, {2, 3, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_UNLINK:    {OpUnlink, []pathArg{{inCwd, 0, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_LINK:      {OpLink, []pathArg{{inCwd, 0, inspect.TheName}, {inCwd, 1, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_SYMLINK:   {OpSymlink, []pathArg{{inCwd, 1, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_MKDIR:     {OpMkdir, []pathArg{{inCwd, 0, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_RMDIR:     {OpRmdir, []pathArg{{inCwd, 0, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_MKNOD:     {OpMknod, []pathArg{{inCwd, 0, inspect.TheName}}, noFlags, 0, always},
		unix.SYS_CHMOD:     {OpMode, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
		unix.SYS_CHOWN:     {OpOwner, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
		unix.SYS_LCHOWN:    {OpOwner, []pathArg{{inCwd, 0, inspect.TheLink}}, noFlags, 0, always},
		unix.SYS_UTIME:     {OpTimes, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
		unix.SYS_UTIMES:    {OpTimes, []pathArg{{inCwd, 0, inspect.TheFile}}, noFlags, 0, always},
		unix.SYS_FUTIMESAT: {OpTimes, []pathArg{{0, 1, inspect.TheFile}}, noFlags, 1, ifPointer},
	} {
		kinds[nr] = c
	}
}
