package deck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What /proc tells of a process: whether it has something to do, which an inbox waits for.

// starts reports whether one of these threads of a process, which read from pipes, waits until a child has executed a program, which does or is about
// to: it hears of a failure by a pipe that the child has until then. A shell that waits for what a part of it prints reads from one that would be
// handed down.
func starts(pid int, reads []string, briefly func(child int) bool) bool {
	for _, of := range reads {
		call := told(of + "syscall")
		var nr, fd int
		if n, _ := fmt.Sscanf(string(call), "%d 0x%x", &nr, &fd); n < 2 {
			continue
		}
		pipe, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
		children, _ := os.ReadFile(of + "children")
		list := strings.Fields(string(children))
		for _, child := range list[:min(len(list), maxThreads)] {
			n, _ := strconv.Atoi(child)
			if !briefly(n) {
				continue
			}
			switch does := busy(n); {
			case does.runs && (executing("/proc/"+child) || keeps("/proc/"+child, pipe)), !does.runs && does.waits && executes("/proc/"+child):
				return true
			}
		}
	}
	return false
}

// beginsFrom reports whether a thread that waits does so before its first instruction, in set_robust_list, and is this one or was made after it.
func beginsFrom(thread string, first int) bool {
	call := told(thread + "syscall")
	nr, _, _ := strings.Cut(string(call), " ")
	number, _ := strconv.Atoi(path.Base(thread))
	return number >= first && nr == map[string]string{"amd64": "273", "arm64": "99"}[runtime.GOARCH]
}

// childrenBefore are the children that the same thread of a process had made before one; all of them where that is 0.
func childrenBefore(pid, child int) (all []int) {
	for of := range threadsOf(pid) {
		list, _ := os.ReadFile(of + "children")
		first := len(all)
		for _, word := range bytes.Fields(list) {
			n, _ := strconv.Atoi(string(word))
			if n == child {
				return all[first:]
			}
			all = append(all, n)
		}
	}
	if child != 0 {
		return nil
	}
	return all
}

// reaper is the parent of a process that has ended and is not gone; 0 of another one.
func reaper(pid int) int {
	stat := statOf(fmt.Sprintf("/proc/%d/", pid))
	if len(stat) < 2 || stat[0][0] != 'Z' {
		return 0
	}
	by, _ := strconv.Atoi(string(stat[1]))
	return by
}

// inside is the number that a process has in the jail; 0 for one that is gone.
func inside(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, numbers, _ := bytes.Cut(status, []byte("\nNStgid:"))
	line, _, _ := bytes.Cut(numbers, []byte("\n"))
	words := bytes.Fields(line)
	if len(words) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(words[len(words)-1])) // the innermost namespace's
	return n
}

// executing reports whether a process runs that is in the middle of an execve: it has no arguments then.
func executing(process string) bool {
	f, err := os.Open(process + "/cmdline")
	if err != nil {
		return false
	}
	defer f.Close()
	n, err := f.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// executes reports whether a process that waits does so in execve or execveat.
func executes(process string) bool {
	call := told(process + "/syscall")
	nr, _, _ := strings.Cut(string(call), " ")
	return slices.Contains(map[string][]string{"amd64": {"59", "322"}, "arm64": {"221", "281"}}[runtime.GOARCH], nr)
}

// keeps reports whether a process may write to a file by a descriptor that is closed when it executes a program.
func keeps(process, file string) bool {
	all, _ := os.ReadDir(process + "/fd")
	return slices.ContainsFunc(all, func(fd os.DirEntry) bool {
		if is, _ := os.Readlink(process + "/fd/" + fd.Name()); is != file {
			return false
		}
		info, _ := os.ReadFile(process + "/fdinfo/" + fd.Name())
		_, after, _ := bytes.Cut(info, []byte("flags:"))
		flags := 0
		_, _ = fmt.Sscanf(string(after), "%o", &flags)
		return flags&syscall.O_CLOEXEC != 0 && flags&(syscall.O_WRONLY|syscall.O_RDWR) == syscall.O_WRONLY
	})
}

// briefly reports whether a process has not worked for long: else it is about something else than to execute a program.
func briefly(pid int) bool { return worked(pid) < restChild }

// maxThreads is how many threads of a process are looked at, and children of each.
const maxThreads = 256

// doing is what a process has to do: whether a thread of it runs, or waits for a processor; else whether one waits for a disk, or for the jail, which has
// it stand still for a moment as it executes a program; and which threads read from a pipe.
type doing struct {
	runs, waits bool
	reads       []string
}

func (d *doing) rests() bool { return !d.runs && !d.waits }

// atWork reports whether a process has something to do.
func atWork(pid int) bool {
	does := busy(pid)
	return !does.rests()
}

// busy looks at a process.
func busy(pid int) doing { return busyBeside(pid, 0) }

// busyBeside is busy of a process without a thread that has not begun, and those after it; 0 is no thread.
func busyBeside(pid, begins int) (does doing) {
	for of := range threadsOf(pid) {
		where := told(of + "wchan")
		if bytes.Contains(where, []byte("pipe_read")) {
			does.reads = append(does.reads, of)
		}
		if asleep(where) {
			continue
		}
		switch stateOf(of) {
		case 0, 'Z':
		case 'R':
			does.runs = true
			return does
		case 'D', 't':
			does.waits = does.waits || !sleeps(of)
		default:
			does.waits = does.waits || heldUp(of, where) && (begins == 0 || !beginsFrom(of, begins))
		}
	}
	return does
}

// asleep reports whether where a thread waits is one of the places where most do: there it has nothing to do until another one wakes it, and to ask for
// its state would take longer than for the place. The kernel says no place of a thread that runs, or is about to.
func asleep(where []byte) bool {
	for _, place := range [...]string{"futex", "epoll_wait", "ep_poll", "poll_schedule", "do_poll", "do_select", "nanosleep", "pipe_read", "do_wait"} {
		if bytes.Contains(where, []byte(place)) {
			return true
		}
	}
	return false
}

// heldUp reports whether a thread that sleeps, at a place, may wait for what the jail tells it. Of one that has not left its processor's queue yet, and
// is not taken out before its turn (Linux 6.12 and newer), the kernel says no place; nor does it of one that may not be looked at.
func heldUp(thread string, where []byte) bool {
	if string(where) == "0" {
		return len(told(thread+"syscall")) > 0 && tellsPlaces()
	}
	return bytes.Contains(where, []byte("seccomp")) && !sleeps(thread)
}

// sleeps reports whether a thread is in clock_nanosleep, which the jail answers too.
func sleeps(thread string) bool {
	call := told(thread + "syscall")
	nr, _, _ := strings.Cut(string(call), " ")
	return nr == map[string]string{"amd64": "230", "arm64": "115"}[runtime.GOARCH]
}

// tellsPlaces reports whether this kernel says where a thread sleeps, as some of ours always do.
var tellsPlaces = sync.OnceValue(func() bool {
	for of := range threadsOf(os.Getpid()) {
		if where := told(of + "wchan"); len(where) > 0 && string(where) != "0" {
			return true
		}
	}
	return false
})

// turns is how often the threads of a process have had a processor: the third field of their schedstat.
func turns(pid int) (sum int) {
	for of := range threadsOf(pid) {
		if fields := bytes.Fields(told(of + "schedstat")); len(fields) == 3 {
			n, _ := strconv.Atoi(string(fields[2]))
			sum += n
		}
	}
	return sum
}

// threadsOf are the directories of a process's threads.
func threadsOf(pid int) iter.Seq[string] {
	return func(yield func(string) bool) {
		tasks, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return
		}
		defer tasks.Close()
		names, _ := tasks.Readdirnames(maxThreads)
		for _, task := range names {
			if !yield(fmt.Sprintf("/proc/%d/task/%s/", pid, task)) {
				return
			}
		}
	}
}

// worked is how much processor time a process has used.
func worked(pid int) (sum time.Duration) {
	const user, system, tick = 11, 12, 10 * time.Millisecond // fields behind the name, proc_pid_stat(5)
	if stat := statOf(fmt.Sprintf("/proc/%d/", pid)); len(stat) > system {
		for _, field := range stat[user : system+1] {
			n, _ := strconv.Atoi(string(field))
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// statOf are the fields of a process or thread behind its name; none where it has ended.
func statOf(dir string) [][]byte {
	b := told(dir + "stat")
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}

// stateOf is the first of them, a letter; 0 where the thread has ended.
func stateOf(thread string) byte {
	b := told(thread + "stat")
	if at := bytes.LastIndexByte(b, ')'); at >= 0 && at+2 < len(b) {
		return b[at+2]
	}
	return 0
}

// told is what a file of /proc says that is a line or two; nothing where there is none. A process is looked at through hundreds of them before each
// answer, so they are kept open: to open one takes three times as long as to read it. One of a thread that has ended says so, whoever has its
// number now.
func told(name string) []byte {
	kept.Lock()
	defer kept.Unlock()
	b := make([]byte, 1024)
	if f := kept.files[name]; f != nil {
		if n, _ := f.ReadAt(b, 0); n > 0 {
			return b[:n]
		}
		f.Close()
		delete(kept.files, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	if len(kept.files) == maxKept {
		kept.close()
	}
	kept.files[name] = f
	n, _ := f.ReadAt(b, 0)
	return b[:n]
}

// kept are files of /proc that are open, by name.
var kept = keptFiles{files: make(map[string]*os.File)}

type keptFiles struct {
	sync.Mutex
	files map[string]*os.File // guarded by it
}

// maxKept is how many are kept; then all are opened anew. Other files of this process need descriptors too.
const maxKept = 128

// forget closes all.
func (k *keptFiles) forget() {
	k.Lock()
	defer k.Unlock()
	k.close()
}

func (k *keptFiles) close() {
	for _, f := range k.files {
		f.Close()
	}
	clear(k.files)
}
