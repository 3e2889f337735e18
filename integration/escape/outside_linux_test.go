//go:build escape

package escape

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the user that a root caller tries everything as once more.
const nobody = 65534

// An outside is everything that a program inside must not reach, and the witness of what it did. Close removes it all.
type outside struct {
	scene
	base string // holds home, work and the like
	uid  int    // of the recorder and the program

	mu      sync.Mutex
	hits    map[string]int // connections and datagrams, by what they reached
	signals []string       // that the victim got

	victim *exec.Cmd
	nice   int
	typed  int // bytes that wait on the outer terminal after a run
	undo   []func()
	// covered is what a file beside our keys holds, and nothing else.
	covered string
}

// newOutside makes it all for a recorder of the user.
func newOutside(uid int, only string, long bool) (_ *outside, err error) {
	o := &outside{uid: uid, hits: make(map[string]int)}
	o.Only, o.Long = only, long
	o.TCP, o.UDP, o.Sockets = make(map[string]string), make(map[string]string), make(map[string]string)
	defer func() {
		if err != nil {
			o.Close()
		}
	}()
	for _, step := range []func() error{
		o.makeDirs, o.listenTCP, o.listenTLS, o.listenUDP, o.listenUnix, o.makeFIFO, o.makeIPC, o.startVictim,
		o.makePrivileged, o.makeCgroup,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Close takes the outside away.
func (o *outside) Close() {
	for i := len(o.undo) - 1; i >= 0; i-- {
		o.undo[i]()
	}
	o.undo = nil
}

func (o *outside) cleanup(f func()) { o.undo = append(o.undo, f) }

func (o *outside) hit(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hits[what]++
}

// unreached is nil where nothing reached any of what is named.
func (o *outside) unreached(what ...string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range what {
		if n := o.hits[w]; n > 0 {
			return fmt.Errorf("%s was reached %d times", w, n)
		}
	}
	return nil
}

// forget begins a new run.
func (o *outside) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hits, o.signals = make(map[string]int), nil
}

// own makes path the user's.
func (o *outside) own(path string) error { return os.Lchown(path, o.uid, -1) }

func (o *outside) makeDirs() (err error) {
	if o.base, err = os.MkdirTemp("/var/tmp", "tapedeck-escape-"); err != nil {
		return err
	}
	o.cleanup(func() { os.RemoveAll(o.base) })
	o.Token = filepath.Base(o.base)
	o.Elsewhere = filepath.Join(o.base, "elsewhere")
	o.Home, o.Work, o.Temp = filepath.Join(o.base, "home"), filepath.Join(o.base, "work"), filepath.Join(o.base, "tmp")
	o.Runtime, o.Small, o.SlashTmp = filepath.Join(o.base, "runtime"), filepath.Join(o.base, "small"), filepath.Join(o.base, "slash-tmp")
	o.Config = filepath.Join(o.Home, ".config", "tapedeck")
	if err := os.Chmod(o.base, 0o755); err != nil {
		return err
	}
	for _, d := range []string{
		o.Home, o.Work, filepath.Join(o.Work, "runs"), o.Temp, o.Small, o.SlashTmp, o.Runtime, filepath.Dir(o.Config), o.Config,
		o.Elsewhere, filepath.Join(o.Elsewhere, "proc"),
	} {
		if err := errors.Join(os.Mkdir(d, 0o755), o.own(d)); err != nil {
			return err
		}
	}
	for _, f := range []string{
		filepath.Join(o.Elsewhere, "file"), filepath.Join(o.Elsewhere, "stdin"), filepath.Join(o.Elsewhere, "stderr"),
		filepath.Join(o.Elsewhere, "leaked"), filepath.Join(o.Runtime, "file"),
	} {
		if err := errors.Join(os.WriteFile(f, []byte(o.Token+"\n"), 0o644), o.own(f)); err != nil {
			return err
		}
	}
	o.covered = "what is covered in " + o.Token + "\n"
	mine := filepath.Join(o.Config, "mine")
	return errors.Join(os.WriteFile(mine, []byte(o.covered), 0o644), o.own(mine))
}

// listenTCP listens where only the host itself is: on its loopback, and on every address of its own.
func (o *outside) listenTCP() error {
	for what, addr := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0", "any": ":0", "proxy": "127.0.0.1:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil && what == "tcp6" {
			continue // a machine without IPv6
		}
		if err != nil {
			return err
		}
		o.TCP[what] = l.Addr().String()
		o.accept(what, l)
	}
	addrs, err := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && o.Address == "" {
			o.Address = ip.IP.String()
		}
	}
	return err
}

// accept counts what connects to l, until Close.
func (o *outside) accept(what string, l net.Listener) {
	o.cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.hit(what)
			c.Write([]byte(o.Token + "\n"))
			c.Close()
		}
	}()
}

func (o *outside) listenUDP() error {
	for what, addr := range map[string]string{"udp4": "127.0.0.1:0", "udp": ":0"} {
		c, err := net.ListenPacket("udp", addr)
		if err != nil {
			return err
		}
		o.cleanup(func() { c.Close() })
		o.UDP[what] = c.LocalAddr().String()
		go func() {
			for {
				if _, _, err := c.ReadFrom(make([]byte, 100)); err != nil {
					return
				}
				o.hit(what)
			}
		}()
	}
	return nil
}

// listenUnix makes the sockets that stand before the start.
func (o *outside) listenUnix() error {
	paths := map[string]string{
		"abstract": "@" + o.Token, "x11": "@/tmp/.X11-unix/X" + o.Token,
		"home": filepath.Join(o.Home, "a.sock"), "temp": filepath.Join(o.Temp, "a.sock"), "work": filepath.Join(o.Work, "a.sock"),
		"runtime": filepath.Join(o.Runtime, "a.sock"),
	}
	if os.Geteuid() == 0 {
		paths["run"] = filepath.Join("/run", o.Token+".sock")
	}
	for what, path := range paths {
		if err := o.listenAt(what, path, path); err != nil {
			return err
		}
	}
	// A name that /proc/net/unix does not have in full, and one that is no longer the one it was bound by.
	if err := o.listenRelative(); err != nil {
		return err
	}
	old, renamed := filepath.Join(o.Home, "old.sock"), filepath.Join(o.Home, "renamed.sock")
	if err := o.listenAt("renamed", old, renamed); err != nil {
		return err
	}
	linked, below, moved := filepath.Join(o.Home, "linked.sock"), filepath.Join(o.Home, "below"), filepath.Join(o.Home, "moved")
	line := filepath.Join(o.Home, "new\nline.sock")
	hard, shown := filepath.Join(o.Home, "hard.sock"), filepath.Join(moved, "a.sock")
	if err := errors.Join(os.Rename(old, renamed), os.MkdirAll(below, 0o755), o.listenAt("line", line, line),
		o.listenAt("hard", linked, hard), o.listenAt("moved", filepath.Join(below, "a.sock"), shown)); err != nil {
		return err
	}
	o.cleanup(func() { os.RemoveAll(moved); os.Remove(linked) })
	return errors.Join(o.own(below), os.Link(linked, hard), os.Rename(below, moved), o.receiveUnix())
}

// receiveUnix makes a socket of datagrams.
func (o *outside) receiveUnix() error {
	path := filepath.Join(o.Home, "datagrams.sock")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	o.Sockets["datagrams"] = path
	o.cleanup(func() { c.Close(); os.Remove(path) })
	go func() {
		for {
			if _, _, err := c.ReadFromUnix(make([]byte, 100)); err != nil {
				return
			}
			o.hit("datagrams")
		}
	}()
	return os.Chmod(path, 0o777)
}

func (o *outside) listenAt(what, path, shown string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	o.Sockets[what] = shown
	o.accept(what, l)
	if strings.HasPrefix(path, "@") {
		return nil
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	o.cleanup(func() { os.Remove(shown) })
	return os.Chmod(path, 0o777)
}

// listenRelative has another process bind a socket by a relative name, for the working directory is a whole process's.
func (o *outside) listenRelative() error {
	cmd := exec.Command("/proc/self/exe", "relative")
	cmd.Dir = o.Elsewhere
	said, err := o.start(cmd)
	if err != nil {
		return err
	}
	o.Sockets["relative"] = filepath.Join(o.Elsewhere, relativeName)
	go func() {
		for range said {
			o.hit("relative")
		}
	}()
	return nil
}

const relativeName = "relative.sock"

// bindRelative is the process of listenRelative: it prints a line, then one for each connection.
func bindRelative() error {
	l, err := net.Listen("unix", relativeName)
	if err != nil {
		return err
	}
	if err := os.Chmod(relativeName, 0o777); err != nil {
		return err
	}
	for fmt.Println("ready"); ; fmt.Println("reached") {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		c.Close()
	}
}

// start starts a process of the user's that lives until Close, and returns the lines that follow its first.
func (o *outside) start(cmd *exec.Cmd) (<-chan string, error) {
	o.take(cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	o.cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		return nil, fmt.Errorf("%s did not come up", cmd.Args)
	}
	said := make(chan string)
	go func() {
		defer close(said)
		for lines.Scan() {
			said <- lines.Text()
		}
	}()
	return said, nil
}

// take makes a command run as the user.
func (o *outside) take(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	if o.uid != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.uid)}
	}
}

// listenLater makes the sockets that come into being while the program runs.
func (o *outside) listenLater() error {
	path := filepath.Join(o.Home, laterName)
	os.Remove(path)
	return o.listenAt("later", path, path)
}

const laterName = "later.sock"

func (o *outside) makeFIFO() error {
	return errors.Join(o.readFIFO("fifo", filepath.Join(o.Elsewhere, "fifo")), o.readFIFO("homefifo", filepath.Join(o.Home, "fifo")))
}

func (o *outside) readFIFO(what, path string) error {
	if err := errors.Join(unix.Mkfifo(path, 0o644), o.own(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // both ends, so that nobody waits
	if err != nil {
		return err
	}
	o.cleanup(func() { f.Close(); os.Remove(path) })
	go func() {
		for {
			if _, err := f.Read(make([]byte, 100)); err != nil {
				return
			}
			o.hit(what)
		}
	}()
	return nil
}

// startVictim starts the process that must be neither seen nor touched.
func (o *outside) startVictim() error {
	cmd := exec.Command("/proc/self/exe", "victim")
	cmd.Dir, cmd.Env = o.Elsewhere, []string{"VICTIM=" + o.Token}
	secret, err := os.Open(filepath.Join(o.Elsewhere, "file"))
	if err != nil {
		return err
	}
	defer secret.Close()
	cmd.ExtraFiles = []*os.File{secret}
	said, err := o.start(cmd)
	if err != nil {
		return err
	}
	o.victim, o.Victim = cmd, cmd.Process.Pid
	if o.nice, err = unix.Getpriority(unix.PRIO_PROCESS, o.Victim); err != nil {
		return err
	}
	go func() {
		for s := range said {
			o.mu.Lock()
			o.signals = append(o.signals, s)
			o.mu.Unlock()
		}
	}()
	return nil
}

// unhurt is nil where the victim runs as it was, untraced, and got no signal.
func (o *outside) unhurt() error {
	o.mu.Lock()
	signals := o.signals
	o.mu.Unlock()
	if len(signals) > 0 {
		return fmt.Errorf("the victim got %q", signals)
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(o.Victim) + "/status")
	if err != nil {
		return fmt.Errorf("the victim is gone: %w", err)
	}
	if !strings.Contains(string(status), "TracerPid:\t0\n") {
		return errors.New("the victim is traced")
	}
	n, err := unix.Getpriority(unix.PRIO_PROCESS, o.Victim)
	if err == nil && n != o.nice {
		err = fmt.Errorf("the victim's priority is %d, was %d", n, o.nice)
	}
	return err
}
