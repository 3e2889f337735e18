package jail

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// helperConnect goes to its first argument and connects to each path that follows; then it makes sockets of its own there and
// in /dev/shm, which it must reach by each name that they get. It prints what went otherwise than it must.
func helperConnect(args []string) int {
	if err := os.Chdir(args[0]); err != nil {
		fmt.Println(err)
		return 1
	}
	fd, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	byFD := func(path string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", fd, path) }
	refused := func(path string) {
		if err := connectUnix(path); !errors.Is(err, unix.ECONNREFUSED) {
			fmt.Printf("%q: %s\n", path, errorName(err))
		}
	}
	for _, path := range args[1:] {
		refused(path)
		refused(byFD(path))
		os.Link(path, "linked")
		refused("linked")
		os.Remove("linked")
		if os.Rename(path, "moved") == nil {
			refused("moved")
			os.Rename("moved", path)
		}
		os.Symlink(path, "symlink")
		refused("./symlink")
		os.Remove("symlink")
	}
	for _, dir := range []string{args[0], "/dev/shm"} {
		if err := connectOwn(dir); err != nil {
			fmt.Println(dir, err)
		}
	}
	for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
		if _, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0); !errors.Is(err, unix.ESOCKTNOSUPPORT) {
			fmt.Println("socket", kind, errorName(err))
		}
		if err := tryPair(kind); err != nil {
			fmt.Println("socketpair", kind, err)
		}
	}
	for _, pair := range []struct {
		family, kind, protocol int
		want                   unix.Errno
	}{
		{unix.AF_UNIX, unix.SOCK_DGRAM, unix.AF_UNIX, 0}, {unix.AF_UNIX, unix.SOCK_DGRAM, 5, unix.EPROTONOSUPPORT},
		{unix.AF_UNIX, unix.SOCK_RDM, 0, unix.ESOCKTNOSUPPORT}, {unix.AF_UNIX, unix.SOCK_DGRAM | 0x40, 0, unix.EINVAL},
		{unix.AF_INET, unix.SOCK_DGRAM, 0, unix.EOPNOTSUPP}, {unix.AF_TIPC, unix.SOCK_STREAM, 0, unix.EOPNOTSUPP},
	} {
		fds, err := unix.Socketpair(pair.family, pair.kind, pair.protocol)
		if !errors.Is(cmp.Or(err, error(unix.Errno(0))), pair.want) {
			fmt.Println("socketpair", pair, errorName(err))
		}
		if err != nil {
			continue
		}
		if kind, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
			fmt.Println("socketpair", pair, "is of type", kind, err)
		}
	}
	for i := range 2 { // the second one cannot have the PID
		if at, err := netlinkAddress(); err != nil || at.Pid == 0 || (at.Pid == uint32(os.Getpid())) != (i == 0) {
			fmt.Println("netlink", i, at, err)
		}
	}
	if _, _, errno := unix.Syscall(filter.SysMemfdSecret, 0, 0, 0); errno != unix.ENOSYS {
		fmt.Println("memfd_secret", errno)
	}
	return 0
}

// netlinkAddress is what a netlink socket has that was connected, and which stays open.
func netlinkAddress() (*unix.SockaddrNetlink, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	sa, err := unix.Getsockname(fd)
	at, _ := sa.(*unix.SockaddrNetlink)
	return at, err
}

// tryPair sends through a pair of datagram sockets. It must keep bounds and send nowhere else.
func tryPair(kind int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer inspect.CloseAll(fds[:])
	var buf [10]byte
	_, err1 := unix.Write(fds[0], []byte("one"))
	err2 := unix.Sendto(fds[0], []byte("two"), 0, &unix.SockaddrUnix{Name: "/nowhere"})
	_, err3 := unix.Read(fds[1], buf[:])
	n, err4 := unix.Read(fds[1], buf[:])
	_, err5 := unix.Read(fds[1], buf[:])
	flags, err6 := unix.FcntlInt(uintptr(fds[1]), unix.F_GETFD, 0)
	if err := errors.Join(err1, err2, err3, err4, err6); err != nil || string(buf[:n]) != "two" || !errors.Is(err5, unix.EAGAIN) || flags != 0 {
		return fmt.Errorf("%w, %q, %w, flags %d", err, buf[:n], err5, flags)
	}
	return nil
}

// connectOwn reaches a socket that it makes in dir.
func connectOwn(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	l, err := net.Listen("unix", "own")
	if err != nil {
		return err
	}
	defer os.Remove("renamed")
	defer l.Close()
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "hello")
			c.Close()
		}
	}()
	if err := errors.Join(connectUnix("own"), connectUnix(filepath.Join(dir, "own")), connectUnix("/proc/self/cwd/own")); err != nil {
		return err
	}
	if err := os.Rename("own", "renamed"); err != nil {
		return err
	}
	if err := connectUnix("own"); !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("where nothing is: %w", err)
	}
	c, err := net.Dial("unix", "renamed")
	if err != nil {
		return err
	}
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "hello" {
		return fmt.Errorf("read %q, %w", b, err)
	}
	return nil
}

func connectUnix(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}

// listenAt listens on the host at a path that is relative to dir. It must not be reached: who does must not wait for an answer.
func listenAt(t *testing.T, dir, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() {
			_, _, err := unix.Accept4(fd, unix.SOCK_NONBLOCK)
			if !errors.Is(err, unix.EAGAIN) {
				t.Errorf("%q was reached (%v)", path, err)
			}
			unix.Close(fd)
		})
		err = onThreadIn(dir, func() error { return unix.Bind(fd, &unix.SockaddrUnix{Name: path}) })
	}
	if err = errors.Join(err, unix.SetNonblock(fd, true), unix.Listen(fd, 100)); err != nil {
		t.Fatal(path, err)
	}
}

// onThreadIn runs f on a thread of its own with another working directory.
func onThreadIn(dir string, f func() error) (err error) {
	onOwnThread(func() {
		if err = unix.Unshare(unix.CLONE_FS); err == nil {
			err = unix.Chdir(dir)
		}
		if err == nil {
			err = f()
		}
	})
	return err
}

// onOwnThread runs f on a thread that nothing else uses, before or after, and never on the main one, which /proc/self shows.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // still locked: the thread ends
		}
		onOwnThread(f)
		runtime.UnlockOSThread()
	}()
	<-done
}

// TestHostSockets: no Unix socket of the host is reached, however it was bound and whatever it is called; the jail's own are.
func TestHostSockets(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	listenAt(t, dir, filepath.Join(dir, "absolute"))
	listenAt(t, dir, "relative")
	listenAt(t, dir, "new\nline")
	listenAt(t, dir, "before")
	listenAt(t, dir, "sub/below")
	c := helperConfig(t, "connect", dir, "absolute", "relative", "new\nline", "renamed", "hard", "dir/below", "later")
	c.Writable = []string{dir}
	err := errors.Join(os.Rename(filepath.Join(dir, "before"), filepath.Join(dir, "renamed")),
		os.Link(filepath.Join(dir, "absolute"), filepath.Join(dir, "hard")))
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, func(*Jail) {
		listenAt(t, dir, "later")
		if err := os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "dir")); err != nil {
			t.Error(err)
		}
	}).want(t, "")
}

// TestHostSocketsHidden: an overlay hides them, and a program that made a network namespace of its own reaches what it makes
// there, but no more of the host's.
func TestHostSocketsHidden(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"connect", "connectnest"} {
		for _, hidden := range []bool{false, true} {
			dir := testDir(t)
			listenAt(t, dir, "relative")
			c := helperConfig(t, kind, dir, "relative")
			if hidden {
				c.Overlays = []mount.Overlay{overlay(t, dir)}
			} else {
				c.Writable = []string{dir}
			}
			if r := run(t, c, nil); r.stdout != "" || r.exit != (Exit{}) {
				t.Errorf("%s, hidden %v: %+v", kind, hidden, r)
			}
		}
	}
}

// helperConnectNest does what helperConnect does in a network namespace of its own.
func helperConnectNest(args []string) int {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), helperVar+"=connect")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET}
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestFullBacklog: a connect that waits for its peer holds up nobody else's.
func TestFullBacklog(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "backlog", testDir(t))
	c.Writable = []string{c.Argv[1]}
	run(t, c, nil).want(t, "")
}

// helperBacklog fills the backlog of a socket, has connects wait for it, and connects to another one.
func helperBacklog(args []string) int {
	full := filepath.Join(args[0], "full")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err = errors.Join(err, unix.Bind(fd, &unix.SockaddrUnix{Name: full}), unix.Listen(fd, 0)); err != nil {
		fmt.Println(err)
		return 1
	}
	const waiting = 5
	errs := make(chan error, waiting+1)
	for range waiting + 1 {
		go func() { errs <- connectUnix(full) }()
	}
	if err := <-errs; err != nil { // the one that there is room for
		fmt.Println(err)
	}
	if err := connectOwn(args[0]); err != nil {
		fmt.Println(err)
	}
	for range waiting {
		if _, _, err := unix.Accept(fd); err != nil {
			fmt.Println(err)
		}
		select {
		case err := <-errs:
			if err != nil {
				fmt.Println(err)
			}
		case <-time.After(time.Minute):
			fmt.Println("still waits")
		}
	}
	return 0
}

// TestUnansweredConnect: a connect that nobody answers does not hold up the end, and a killed caller's leaves its place to others.
func TestUnansweredConnect(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "unanswered", "outer")
	var j *Jail
	run(t, c, func(started *Jail) { j = started }).want(t, "")
	start := time.Now()
	j.Close()
	if took := time.Since(start); took > 20*time.Second {
		t.Error("the end took", took)
	}
	if n := j.supervisor.connects.Making(); n != 0 {
		t.Error(n, "connects are left")
	}
}

// helperUnanswered makes a network namespace in which an address never answers, has processes connect to it that it kills, as
// many as may connect at once, then connects itself and ends.
func helperUnanswered(args []string) int {
	if args[0] == "outer" {
		cmd := exec.Command("/proc/self/exe", "inner")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, AmbientCaps: []uintptr{unix.CAP_NET_ADMIN}}
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
		}
		return 0
	}
	if args[0] == "inner" {
		if err := silentNetwork(); err != nil {
			fmt.Println("network:", err)
			return 1
		}
		cmd := exec.Command("/proc/self/exe", "many")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err = errors.Join(err, cmd.Start()); err != nil {
			fmt.Println(err)
			return 1
		}
		out.Read(make([]byte, 1))
		time.Sleep(100 * time.Millisecond) // the last ones are under way
		cmd.Process.Kill()
		cmd.Wait()
		for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			err := connectUnix("/nowhere")
			if errors.Is(err, unix.ENOENT) {
				break
			}
			if time.Since(start) > 20*time.Second {
				fmt.Println("after the kill:", errorName(err))
				break
			}
		}
	}
	done := make(chan error)
	many := 1
	if args[0] == "many" {
		many = connect.MaxConnects + 1
	}
	for range many {
		go func() { done <- connectSilent() }()
	}
	if args[0] == "many" {
		fmt.Println(<-done) // EAGAIN
		select {}
	}
	select {
	case err := <-done:
		fmt.Println("answered", errorName(err))
	case <-time.After(100 * time.Millisecond):
	}
	return 0
}

// silentNetwork makes a route to addresses that never answer.
func silentNetwork() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return err
	}
	_, dst, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK})
}

// connectSilent connects to one of these, for many minutes.
func connectSilent() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_SYNCNT, 100); err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{10, 0, 0, 1}, Port: 80})
}

// TestConnectSignalled: a signal does not make a connect start again that is being made.
func TestConnectSignalled(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "signalled", testDir(t))
	c.Writable = []string{c.Argv[1]}
	run(t, c, nil).want(t, "")
}

// helperSignalled connects many times while signals come.
func helperSignalled(args []string) int {
	path := filepath.Join(args[0], "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	runtime.LockOSThread()
	thread := unix.Gettid()
	go func() { // what the Go runtime has handlers for, which let calls start again
		for {
			unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			time.Sleep(50 * time.Microsecond)
		}
	}()
	for range 2000 {
		if err := connectUnix(path); err != nil {
			fmt.Println(errorName(err))
			return 1
		}
	}
	return 0
}
