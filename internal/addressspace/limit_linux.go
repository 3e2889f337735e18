package addressspace

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// needed is what a recorder, the stages of its jail and their threads reserve, with room for what they hold.
const needed = 3 << 30 // bytes

const (
	statusFailed   = 1   // of a command that could not run
	statusRecorder = 125 // of one that ends as its program does
)

// statuses are those with which the commands end that run a program in a jail. Others take what they are given.
var statuses = map[string]int{"record": statusRecorder, "cassette record": statusRecorder, "mcp wrap": statusRecorder,
	"replay": statusFailed, "quickstart": statusFailed, "doctor": statusFailed}

func init() {
	status, checked := statusOf(os.Args[min(1, len(os.Args)):])
	if !checked {
		return
	}
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &lim) != nil || lim.Cur >= needed {
		return
	}
	fmt.Fprintf(os.Stderr, "tapedeck: the address space is limited to %d KiB, and it takes %d: raise the limit (ulimit -v)\n", lim.Cur>>10, needed>>10)
	os.Exit(status)
}

// statusOf returns the status of a command line, if it is one of statuses and more than a question for help.
func statusOf(args []string) (status int, checked bool) {
	for n := 1; n <= min(2, len(args)); n++ {
		if status, checked = statuses[strings.Join(args[:n], " ")]; checked {
			return status, len(args) == n || !plain[args[n]]
		}
	}
	return 0, false
}

// plain are the words behind such a command with which it runs nothing in a jail.
var plain = map[string]bool{"-h": true, "--help": true, "agent": true, "endpoint": true}
