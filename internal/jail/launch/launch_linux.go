package launch

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// InitName is the name that our own executable is started by when it is the init of a jail.
const InitName = "tapedeck-init"

// ControlFD is the descriptor of the init's end of its control socket.
const ControlFD = 3

const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
	syscall.CLONE_NEWIPC

// caps are what the init needs over the new namespaces: CAP_DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, KILL, SETPCAP, NET_BIND_SERVICE, NET_ADMIN,
// NET_RAW, SYS_CHROOT, SYS_ADMIN and SYS_RESOURCE (linux/capability.h). For a caller that is not root they must be ambient to outlive the
// init's execve.
var caps = []uintptr{1, 2, 3, 5, 8, 10, 12, 13, 18, 21, 24}

// rootsCaps is how many there are, on any kernel that a jail runs on. For root the init has all: what an overlay copies gets owners, modes and
// attributes as far as who mounted it may give them.
const rootsCaps = 38

// An Init is one that was started. Its files are the caller's to close, and it to Wait for.
type Init struct {
	PID             int
	Control, Stderr *os.File // our ends

	mu    sync.Mutex
	pidFD int // -1 once it is gone
}

var (
	ahead = make(chan launched, 1)
	begun atomic.Bool // an init comes out of ahead
)

type launched struct {
	init *Init
	err  error
}

// Ahead starts an init, without waiting for it, that the next Take returns.
func Ahead() {
	begun.Store(true)
	go func() {
		i, err := start()
		ahead <- launched{i, err}
	}()
}

// Take returns the init of Ahead, or starts one.
func Take() (*Init, error) {
	if !begun.Swap(false) {
		return start()
	}
	l := <-ahead
	return l.init, l.err
}

// Drop ends the init of Ahead, if there is one that nobody took.
func Drop() {
	if !begun.Load() {
		return
	}
	if i, err := Take(); err == nil {
		i.Kill()
		i.Wait()
		i.Control.Close()
		i.Stderr.Close()
	}
}

// start starts an init. It has a session of its own, so that a terminal's signals to the recorder's process group do not reach it.
func start() (*Init, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	i := &Init{Control: os.NewFile(uintptr(fds[0]), "control")}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	defer theirs.Close()
	if err = i.start(theirs); err != nil {
		i.Control.Close()
		return nil, err
	}
	return i, nil
}

func (i *Init) start(control *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	ours, stderr, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stderr.Close()
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{"GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1"},
		Files: []uintptr{null.Fd(), null.Fd(), stderr.Fd(), control.Fd()},
		Sys:   &syscall.SysProcAttr{AmbientCaps: caps, Setsid: true, PidFD: &i.pidFD},
	}
	if err = i.exec(attr); err != nil {
		ours.Close()
		return err
	}
	i.Stderr = ours
	return nil
}

// exec makes the process, and maps its ids. Until it is the init it borrows our memory, for to copy that takes longer than all else where we
// have much of it, and we write to ours all the slower then. Its ids can be mapped only afterwards: an executable that is another user's alone,
// which root may run by ids that are mapped, is run by a copy.
func (i *Init) exec(attr *syscall.ProcAttr) (err error) {
	uids, gids := idMappings()
	if os.Geteuid() == 0 {
		attr.Sys.AmbientCaps = nil
		for c := range uintptr(rootsCaps) {
			attr.Sys.AmbientCaps = append(attr.Sys.AmbientCaps, c)
		}
	}
	attr.Sys.Cloneflags = namespaces | syscall.CLONE_VM | syscall.CLONE_VFORK
	if i.PID, err = syscall.ForkExec(self, []string{InitName}, attr); err == nil {
		err = i.mapIDs(uids, gids)
	} else if errors.Is(err, syscall.EACCES) {
		attr.Sys.Cloneflags, attr.Sys.UidMappings, attr.Sys.GidMappings = namespaces, uids, gids
		i.PID, err = syscall.ForkExec(self, []string{InitName}, attr)
	}
	if err != nil {
		return os.NewSyscallError("fork/exec "+self, err)
	}
	i.Control.Write([]byte{mapped}) // an error means that it has ended, which whoever reads finds
	return nil
}

// mapped is what the init is told first.
const mapped = 1

// AwaitIDs waits, in the init, until its ids are those of the recorder. It reports false where the recorder has gone before.
func AwaitIDs() bool {
	var b [1]byte
	n, _ := syscall.Read(ControlFD, b[:])
	return n == 1 && b[0] == mapped
}

// mapIDs maps the ids of an init that was made without; one that fails has ended.
func (i *Init) mapIDs(uids, gids []syscall.SysProcIDMap) error {
	dir := "/proc/" + strconv.Itoa(i.PID)
	for _, f := range []struct{ name, text string }{
		{"/uid_map", mapText(uids)}, {"/setgroups", "deny"}, {"/gid_map", mapText(gids)},
	} {
		if err := os.WriteFile(dir+f.name, []byte(f.text), 0); err != nil {
			i.Kill()
			i.Wait()
			return err
		}
	}
	return nil
}

func mapText(maps []syscall.SysProcIDMap) (text string) {
	for _, m := range maps {
		text += strconv.Itoa(m.ContainerID) + " " + strconv.Itoa(m.HostID) + " " + strconv.Itoa(m.Size) + "\n"
	}
	return text
}

// Kill ends it, if it has not ended.
func (i *Init) Kill() {
	const sendSignal = 424 // pidfd_send_signal, everywhere
	i.mu.Lock()
	defer i.mu.Unlock()
	syscall.Syscall6(sendSignal, uintptr(i.pidFD), uintptr(syscall.SIGKILL), 0, 0, 0, 0)
}

// Wait waits, once, until the init is gone.
func (i *Init) Wait() {
	const byPIDFD, exited = 3, 4 // P_PIDFD, WEXITED
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPIDFD, uintptr(i.pidFD), uintptr(unsafe.Pointer(&info)), exited, 0, 0)
		if errno != syscall.EINTR {
			break
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	syscall.Close(i.pidFD)
	i.pidFD = -1
}

// idMappings keeps the caller's ids. Root may map all that it has, so that other users' files keep their owners.
func idMappings() (uids, gids []syscall.SysProcIDMap) {
	if os.Geteuid() == 0 {
		uids, gids = wholeMap("/proc/self/uid_map"), wholeMap("/proc/self/gid_map")
	}
	if uids == nil || gids == nil {
		uids = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		gids = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	return uids, gids
}

// wholeMap maps each id of our own user namespace to itself; nil where that cannot be read. A line of the file is three numbers: the first id
// inside, the first outside, how many.
func wholeMap(path string) (maps []syscall.SysProcIDMap) {
	text, _ := os.ReadFile(path)
	var numbers [3]int
	at, within := 0, false
	for _, c := range text {
		if c >= '0' && c <= '9' {
			numbers[at], within = 10*numbers[at]+int(c-'0'), true
			continue
		}
		if within {
			at, within = at+1, false
		}
		if at == len(numbers) {
			maps = append(maps, syscall.SysProcIDMap{ContainerID: numbers[0], HostID: numbers[0], Size: numbers[2]})
			numbers, at = [3]int{}, 0
		}
	}
	return maps
}
