//go:build escape

package escape

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var recorderRows = []row{
	{
		name: "signals to process 1", tried: "kill and tgkill with every signal of 1 to 64, to process 1 and to each of its threads",
		how: "the kernel drops for a process 1 what it has no handler for, and it has none", try: trySignalsToInit,
	},
	{
		name: "queued signals to process 1", tried: "rt_sigqueueinfo and rt_tgsigqueueinfo that look like a fault, to process 1 and to each of its threads",
		how: "the filter (EPERM) and the same rule", try: tryQueuedToInit,
	},
	{
		name: "limits of process 1", tried: "prlimit of process 1, and of it by the number of each of its threads, with the limit that it has",
		how: "the filter: EPERM", try: tryLimitsOfInit,
	},
	{
		name: "ptrace of process 1", tried: "PTRACE_SEIZE, process_vm_readv and pidfd_getfd of process 1", how: "it has capabilities that the program has not: EPERM",
		try: func(*inside) outcome {
			buf := make([]byte, 8)
			_, err := unix.ProcessVMReadv(1, []unix.Iovec{{Base: &buf[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
			fd, errOpen := unix.PidfdOpen(1, 0)
			if errOpen != nil {
				return out("pidfd_open: %v", errOpen)
			}
			defer unix.Close(fd)
			_, errGet := unix.PidfdGetfd(fd, 3, 0)
			return all(refused("seize", call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1), unix.EPERM), refused("process_vm_readv", err, unix.EPERM),
				refused("pidfd_getfd", errGet, unix.EPERM))
		},
	},
	{
		name: "/proc of process 1", tried: "its root, cwd, exe, fd, mem, environ, maps, ns", how: "the same: EACCES", try: func(*inside) outcome { return procFiles("/proc/1") },
	},
	{
		name: "settings of process 1", tried: "opening every file in /proc/1 and its threads for writing: oom_score_adj, clear_refs, autogroup, …",
		how: "/proc/1 is read-only", try: func(*inside) outcome { return walkWritable("/proc/1", nil) },
	},
	{
		name: "leaked descriptors", tried: "what /proc/self/fd lists, where the recorder's caller had left a file open for writing",
		how: "all but 0, 1 and 2 are closed at the start", try: tryDescriptors,
	},
	{
		name: "files behind stdin and stderr", tried: "opening /proc/self/fd/0 and 2 anew for writing, truncating them, where the caller gave files",
		how: "the program has pipes or a terminal, and the recorder copies", try: tryStreams, untouched: func(o *outside) error {
			for _, name := range []string{"stdin", "stderr", "leaked"} {
				data, err := os.ReadFile(filepath.Join(o.Elsewhere, name))
				if err != nil {
					return err
				}
				if !strings.HasPrefix(string(data), o.Token+"\n") {
					return fmt.Errorf("%s was changed: %.60q", name, data)
				}
			}
			return nil
		},
	},
	{
		name: "privileges back", tried: "capset, PR_CAP_AMBIENT, securebits, no_new_privs off, setuid, setgid, setgroups", how: "nothing is left to come back: EPERM",
		try: tryPrivileges,
	},
	{
		name: "setuid and setgid programs", tried: "executing a program with the setuid and setgid bits of root", how: "no_new_privs and nosuid: it runs as its caller",
		try: func(in *inside) outcome { return tryPrivileged(in.Setuid) },
	},
	{
		name: "programs with capabilities", tried: "executing a program with file capabilities (setcap)", how: "the same, and an empty bounding set",
		try: func(in *inside) outcome { return tryPrivileged(in.Setcap) },
	},
	{
		name: "a filter over ours", tried: "a seccomp filter that allows everything; a notification listener", how: "the strictest filter counts; a second listener is EBUSY",
		try: tryFilter,
	},
	{
		name: "many processes", tried: "400 forks that then wait, with -long 17,000; raising pid_max", how: "the PID namespace's own limit, 16,384 (Linux 6.14 and newer), read-only; " +
			"all end with the run", untouched: noneLeft, try: tryForks,
	},
	{
		name: "a daemon that stays", tried: "two forks, setsid, every signal ignored, streams closed", how: "the PID namespace ends with the program: a second later nothing is left",
		untouched: noneLeft, try: func(in *inside) outcome {
			said, err := stunt("daemon", in.Token)
			if err != nil {
				return out("the daemon did not start: %v %s", err, said)
			}
			return held("started")
		},
	},
	{
		name: "our keys", tried: "listing and reading $XDG_CONFIG_HOME/tapedeck, by path, /proc/self/root and a rename of the directory above",
		how: "an empty directory covers it; it cannot be renamed: EBUSY", try: tryKeys, untouched: keysUnread,
	},
	{
		name: "the key of the run's CA", tried: "looking for a private key in /run, the environment, the temporary directory; memory of process 1 is a row of its own",
		how: "it is in the recorder's memory alone", try: tryCAKey,
	},
	{
		name: "the recording, while it is made", tried: "reading, writing and removing its directory, tape and blobs; renaming the directory above and putting another recording there",
		how: "an empty directory covers it, EBUSY and EROFS; the recorder writes through a descriptor", try: tryRecording,
	},
	{
		name: "layers of a run", tried: "/var/tmp/tapedeck-UID, where layers and a replay's tape lie", how: "an empty directory covers it, or it is read-only", try: func(*inside) outcome {
			dir := fmt.Sprintf("/var/tmp/tapedeck-%d", os.Getuid())
			entries, err := os.ReadDir(dir)
			if len(entries) > 0 {
				return all(makeRefused(filepath.Join(dir, "escape")), makeRefused(filepath.Join(dir, entries[0].Name(), "escape")))
			}
			if err != nil {
				return refused("listing", err, unix.ENOENT, unix.EACCES)
			}
			return makeRefused(filepath.Join(dir, "escape"))
		},
	},
}

// initThreads are the numbers of process 1 and its threads.
func initThreads() []int {
	entries, _ := os.ReadDir("/proc/1/task")
	var out []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// initRuns is held where process 1 is neither stopped nor dying.
func initRuns() outcome {
	time.Sleep(20 * time.Millisecond)
	data, err := os.ReadFile("/proc/1/stat")
	if err != nil {
		return out("process 1: %v", err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	if rest == "" || strings.IndexAny(rest[:1], "TtZX") == 0 { // stopped, traced, dead
		return out("process 1 is in state %.1q", rest)
	}
	return held("it runs on")
}

func trySignalsToInit(*inside) outcome {
	for _, tid := range initThreads() {
		for sig := syscall.Signal(1); sig <= 64; sig++ {
			unix.Kill(tid, sig)
			unix.Tgkill(1, tid, sig)
		}
	}
	return initRuns()
}

func tryQueuedToInit(*inside) outcome {
	list := []outcome{}
	for _, tid := range initThreads() {
		for _, sig := range []syscall.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGABRT, unix.SIGTRAP, unix.SIGSYS, unix.SIGPROF} {
			for _, code := range []int32{-1, -2} { // SI_QUEUE, SI_TIMER
				var info [128]byte
				*(*int32)(unsafe.Pointer(&info[0])) = int32(sig)
				*(*int32)(unsafe.Pointer(&info[8])) = code
				call(unix.SYS_RT_SIGQUEUEINFO, uintptr(tid), uintptr(sig), pointer(&info))
				list = append(list, refused("rt_tgsigqueueinfo", call(unix.SYS_RT_TGSIGQUEUEINFO, 1, uintptr(tid), uintptr(sig), pointer(&info)), unix.EPERM))
			}
		}
	}
	return all(append(list, initRuns())...)
}

func tryLimitsOfInit(*inside) outcome {
	var list []outcome
	for _, tid := range initThreads() {
		for _, resource := range []int{unix.RLIMIT_NOFILE, unix.RLIMIT_AS, unix.RLIMIT_CPU} {
			lim := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
			if err := unix.Prlimit(tid, resource, nil, &lim); err != nil { // what a thread may not read it may not write
				list = append(list, refused("reading a limit", err, unix.EPERM))
				continue
			}
			list = append(list, refused(fmt.Sprintf("prlimit(%d)", tid), unix.Prlimit(tid, resource, &lim, nil), unix.EPERM))
		}
	}
	return all(list...)
}

// inheritedVar tells a try what the program inherited: the try itself is started by it, with clean hands.
const inheritedVar = "ESCAPE_INHERITED"

// inheritedFiles lists the files behind descriptors above 2, but for those that Go's runtime opens by itself: its poller,
// and the limits of its control group.
func inheritedFiles() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return []string{err.Error()}
	}
	var list []string
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if fd > 2 && err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasSuffix(to, "/fd") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			list = append(list, e.Name()+" is "+to)
		}
	}
	return list
}

func tryDescriptors(*inside) outcome {
	if list := os.Getenv(inheritedVar); list != "" {
		return out("descriptor %s", list)
	}
	return held("none")
}

func tryStreams(*inside) outcome {
	for fd, flags := range map[int]int{0: os.O_RDWR, 2: os.O_WRONLY} {
		to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			return out("descriptor %d: %v", fd, err)
		}
		if strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/dev/") {
			return out("descriptor %d is the file %s", fd, to)
		}
		if f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), flags|unix.O_NONBLOCK, 0); err == nil {
			f.Truncate(0) // of a pipe it fails; of a file the witness tells
			f.Close()
		}
	}
	return held("pipes")
}

func tryPrivileges(*inside) outcome {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	want := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN, Inheritable: 1 << unix.CAP_SYS_ADMIN}}
	other := os.Getuid() + 1
	list := []outcome{
		refused("capset", unix.Capset(&hdr, &want[0]), unix.EPERM),
		refused("an ambient capability", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0), unix.EPERM),
		refused("securebits", unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0), unix.EPERM),
		refused("no_new_privs off", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), unix.EINVAL),
		refused("setgroups", call(unix.SYS_SETGROUPS, 0, 0), unix.EPERM),
		refused("setresuid", call(unix.SYS_SETRESUID, uintptr(other), uintptr(other), uintptr(other)), unix.EPERM, unix.EINVAL),
		refused("setresgid", call(unix.SYS_SETRESGID, uintptr(other), uintptr(other), uintptr(other)), unix.EPERM, unix.EINVAL),
	}
	if os.Getuid() != 0 {
		list = append(list, refused("setuid(0)", call(unix.SYS_SETRESUID, 0, 0, 0), unix.EPERM, unix.EINVAL))
	}
	return all(list...)
}

// whoami prints what a program gained by being executed.
func whoami() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapEff:") || strings.HasPrefix(line, "CapPrm:") || strings.HasPrefix(line, "Uid:") || strings.HasPrefix(line, "Gid:") {
			fmt.Print(strings.ReplaceAll(line, "\t", " "))
		}
	}
	return nil
}

func tryPrivileged(path string) outcome {
	if path == "" {
		return notTried("takes root, to make one")
	}
	plain, err := stunt("whoami")
	if err != nil {
		return out("whoami: %v", err)
	}
	got, err := stuntFrom(path, "whoami")
	if err != nil {
		return refused("executing it", errnoOf(err), unix.EPERM, unix.EACCES)
	}
	if got != plain {
		return out("it ran with %q", got)
	}
	return held("nothing gained")
}

func tryFilter(*inside) outcome {
	allow := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	prog := unix.SockFprog{Len: 1, Filter: &allow[0]}
	errListener := call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, pointer(&prog))
	if err := call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, pointer(&prog)); err != nil {
		return all(refused("a listener", errListener, unix.EBUSY), held("no further filter"))
	}
	return all(refused("a listener", errListener, unix.EBUSY), socketRefused(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, unix.EPERM),
		refused("keyctl", call(unix.SYS_KEYCTL, 0, 0, 0), unix.EPERM))
}

// noneLeft is nil where, a second after the run, no process has the token among its arguments but the victim's siblings.
func noneLeft(o *outside) error {
	var left string
	for range 20 {
		if left = o.leftover(); left == "" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("a second later %s still runs", left)
}

// leftover names a process that was started by a stunt with the token.
func (o *outside) leftover() string {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range paths {
		if data, err := os.ReadFile(p); err == nil && strings.Contains(string(data), "\x00"+o.Token+"\x00") {
			return strings.ReplaceAll(string(data), "\x00", " ")
		}
	}
	return ""
}

// daemon starts another process in a session of its own, which ignores every signal and outlives this one.
func daemon(args []string) error {
	if len(args) > 1 { // it is the daemon
		for sig := syscall.Signal(1); sig <= 64; sig++ {
			ignore(sig)
		}
		for {
			time.Sleep(time.Hour)
		}
	}
	cmd := exec.Command("/proc/self/exe", "stunt", "daemon", args[0], "again")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

func ignore(sig syscall.Signal) {
	action := [4]uintptr{1} // SIG_IGN
	call(unix.SYS_RT_SIGACTION, uintptr(sig), pointer(&action), 0, 8)
}

// Forks that are tried: in the short form, and in the long one, in which the limit must be met.
const (
	someForks = 400
	allForks  = 17_000
)

func tryForks(in *inside) outcome {
	count := someForks
	if in.Long {
		count = allForks
	}
	var made []int
	defer func() {
		for _, pid := range made {
			unix.Kill(pid, unix.SIGKILL)
			unix.Wait4(pid, nil, 0, nil)
		}
	}()
	for range count {
		pid, err := forkWaiting(in.Token)
		if err != nil {
			return all(refused(fmt.Sprintf("fork %d", len(made)), err, unix.EAGAIN), writeRefused("/proc/sys/kernel/pid_max"))
		}
		made = append(made, pid)
	}
	if in.Long {
		return out("%d processes at once", len(made))
	}
	limit, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return out("pid_max: %v", err)
	}
	return all(writeRefused("/proc/sys/kernel/pid_max"), held("%s at most", strings.TrimSpace(string(limit))))
}

// forkWaiting makes a process that stops itself, with the token among its arguments.
func forkWaiting(token string) (int, error) {
	return syscall.ForkExec("/bin/sh", []string{"sh", "-c", "kill -STOP $$", token}, &syscall.ProcAttr{})
}

func tryKeys(in *inside) outcome {
	for _, dir := range []string{in.Config, "/proc/self/root" + in.Config, "/proc/thread-self/cwd/../home/.config/tapedeck"} {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return out("%s lists %s", dir, entries[0].Name())
		}
		for _, name := range []string{"scrub.key", "seal.key", "mine"} {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return out("%s was read: %d bytes", name, len(data))
			}
		}
	}
	list := []outcome{
		refused("renaming it", errnoOf(os.Rename(in.Config, in.Config+".old")), unix.EBUSY, unix.EXDEV),
		refused("removing it", errnoOf(os.Remove(in.Config)), unix.EBUSY),
		makeRefused(filepath.Join(in.Config, "escape")),
	}
	// The directory above may be renamed, and what is covered stays so.
	above := filepath.Dir(in.Config)
	if err := os.Rename(above, above+".old"); err == nil {
		entries, _ := os.ReadDir(filepath.Join(above+".old", "tapedeck"))
		if err := os.Rename(above+".old", above); err != nil {
			return out("could not be renamed back: %v", err)
		}
		if len(entries) > 0 {
			return out("uncovered by a rename")
		}
	}
	return all(append(list, held("empty"))...)
}

func tryCAKey(in *inside) outcome {
	found := ""
	for _, root := range []string{"/run", in.Temp, "/etc/ssl"} {
		filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), "PRIVATE KEY-----") && !strings.HasPrefix(path, "/etc/ssl/private/") {
				found = path
			}
			return nil
		})
	}
	if strings.Contains(strings.Join(os.Environ(), "\n"), "PRIVATE KEY") {
		found = "the environment"
	}
	if found != "" {
		return out("a private key in %s", found)
	}
	return held("certificates only")
}

func tryRecording(in *inside) outcome {
	if in.Recording == "" {
		return held("a replay writes none here")
	}
	if entries, err := os.ReadDir(in.Recording); err == nil && len(entries) > 0 {
		return out("it lists %s", entries[0].Name())
	}
	list := []outcome{
		makeRefused(filepath.Join(in.Recording, "escape")), writeRefused(filepath.Join(in.Recording, "run.tape")),
		makeRefused(filepath.Join(in.Recording, "run.tape.cas")),
		refused("removing it", errnoOf(os.Remove(in.Recording)), unix.EBUSY),
		refused("renaming it", errnoOf(os.Rename(in.Recording, in.Recording+".old")), unix.EBUSY),
	}
	return all(append(list, elsewhere(in.Recording))...)
}

// elsewhere puts another directory where the recording's is, for a while. What the recorder writes meanwhile (it has all
// the output of ours to write) must not land there.
func elsewhere(recording string) outcome {
	above := filepath.Dir(recording)
	if err := os.Rename(above, above+".old"); err != nil {
		return held("not renamed")
	}
	made := os.MkdirAll(filepath.Join(recording, "run.tape.cas"), 0o755)
	fmt.Fprintln(os.Stdout, "something to write down")
	time.Sleep(50 * time.Millisecond)
	entries, _ := os.ReadDir(recording)
	if err := os.RemoveAll(above); err != nil {
		return out("%v", err)
	}
	if err := os.Rename(above+".old", above); err != nil || made != nil {
		return out("could not be put back: %v %v", err, made)
	}
	if len(entries) != 1 {
		return out("the recorder wrote into another directory")
	}
	return held("written through a descriptor")
}

// makeRefused makes a directory, and removes it.
func makeRefused(path string) outcome {
	err := os.Mkdir(path, 0o755)
	if err == nil {
		os.Remove(path)
	}
	return refused("making "+path, err, unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOENT)
}
