package changes

import (
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

func init() {
	kinds[unix.SYS_RENAMEAT] = &kind{OpRename, []pathArg{{0, 1, inspect.TheName}, {2, 3, inspect.TheName}}, noFlags, 0, always}
}
