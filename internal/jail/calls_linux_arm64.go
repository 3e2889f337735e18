package jail

import (
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

func init() {
	watchedCalls[unix.SYS_RENAMEAT] = &watchedCall{OpRename, []pathArg{{0, 1, inspect.TheName}, {2, 3, inspect.TheName}}, noFlags, 0, always}
}
