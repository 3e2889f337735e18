package addressspace

import (
	"fmt"
	"os"
	"syscall"
)

// needed is what a recorder, the stages of its jail and their threads reserve, with room for what they hold.
const needed = 3 << 30 // bytes

const (
	statusFailed   = 1   // of a command that could not run
	statusRecorder = 125 // of one that ends as its program does
)

// recorders are the commands that end as their program does.
var recorders = map[string]bool{"record": true, "cassette": true, "mcp": true}

func init() {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &lim) != nil || lim.Cur >= needed {
		return
	}
	fmt.Fprintf(os.Stderr, "tapedeck: the address space is limited to %d KiB, and it takes %d: raise the limit (ulimit -v)\n", lim.Cur>>10, needed>>10)
	if len(os.Args) > 1 && recorders[os.Args[1]] {
		os.Exit(statusRecorder)
	}
	os.Exit(statusFailed)
}
