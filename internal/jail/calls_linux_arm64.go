package jail

import "golang.org/x/sys/unix"

func init() {
	watchedCalls[unix.SYS_RENAMEAT] = &watchedCall{OpRename, []pathArg{{0, 1, theName}, {2, 3, theName}}, noFlags, 0, always}
}
