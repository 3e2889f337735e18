//go:build escape

package escape

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// owned is how sockets that have a path are told apart.
const owned = "the recorder connects in the program's place, to the file that it looked at, and only if the jail's own network namespace says that" +
	" it is bound there: ECONNREFUSED"

// olderFIFO is how FIFOs of the host are told apart.
const olderFIFO = "the recorder refuses to have a FIFO opened for writing that is older than the run: EACCES"

func writeFIFO(path string) outcome {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return refused("open", err, unix.EACCES, unix.ENXIO, unix.ENOENT)
	}
	defer f.Close()
	_, err = f.WriteString("escape")
	return refused("write", err)
}

// socketRow is a row of a socket that stands outside.
func socketRow(what, name, where string) row {
	return row{name: "a Unix socket " + name, tried: "a connection to a socket " + where, how: owned, untouched: unreached(what),
		try: func(in *inside) outcome { return dialUnix(in.Sockets[what]) }}
}

var socketRows = []row{
	{
		name: "abstract Unix sockets", tried: "connections to abstract sockets of the host, X11's among them",
		how: "they belong to the host's network namespace: ECONNREFUSED", untouched: unreached("abstract", "x11"),
		try: func(in *inside) outcome { return all(dialUnix(in.Sockets["abstract"]), dialUnix(in.Sockets["x11"])) },
	},
	{
		name: "Unix sockets by path", tried: "connections to sockets that stood before the start: in HOME, the temporary directory, the work tree, /run, XDG_RUNTIME_DIR",
		how:       owned + "; /run and the runtime directory are hidden whole",
		untouched: unreached("home", "temp", "work", "run", "runtime"), try: func(in *inside) outcome {
			var list []outcome
			for _, what := range []string{"home", "temp", "work", "run", "runtime"} {
				if path := in.Sockets[what]; path != "" {
					list = append(list, dialUnix(path), dialUnix("/proc/self/root"+path))
				}
			}
			return all(list...)
		},
	},
	{
		name: "a Unix socket that is made later", tried: "a connection to a socket in HOME that the host makes while the program runs",
		how: owned, untouched: unreached("later"), try: func(in *inside) outcome {
			path := filepath.Join(in.Home, laterName)
			for range 100 {
				if _, err := os.Lstat(path); err == nil {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			return dialUnix(path)
		},
	},
	socketRow("renamed", "that was renamed", "in HOME that was bound by another name"),
	socketRow("relative", "elsewhere, bound by a relative name", "outside HOME, the temporary directory, the work tree and /run that everybody may open"),
	socketRow("line", "with a newline in its name", "in HOME that /proc/net/unix lists in two lines"),
	socketRow("hard", "with a second name", "in HOME by a hard link to it"),
	socketRow("moved", "in a directory that was renamed", "in HOME whose directory had another name when it was bound"),
	{
		name: "a Unix socket by other names that the program makes", tried: "a connection by /proc/self/fd/N, a symbolic link, a hard link, and after a rename by the program",
		how: owned, untouched: unreached("renamed"), try: func(in *inside) outcome {
			path := in.Sockets["renamed"]
			dir, err := os.Open(in.Home)
			if err != nil {
				return out("open HOME: %v", err)
			}
			defer dir.Close()
			link, hard, moved := path+".l", path+".h", path+".m"
			os.Symlink(path, link)
			os.Link(path, hard)
			list := []outcome{dialUnix(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))), dialUnix(link), dialUnix(hard)}
			if os.Rename(path, moved) == nil {
				list = append(list, dialUnix(moved))
				os.Rename(moved, path)
			}
			os.Remove(link)
			os.Remove(hard)
			return all(list...)
		},
	},
	{
		name: "a path that changes while it is connected to", tried: "connections to a name that another thread turns from a socket of the program's to one of the host's and back",
		how: owned, untouched: unreached("renamed"), try: dialChanging,
	},
	{
		name: "Unix datagrams", tried: "a datagram to a socket in HOME, from a socket and from one of a pair",
		how: "the filter: sockets of datagrams do not exist, and a pair is one of connected packets: ESOCKTNOSUPPORT", untouched: unreached("datagrams"),
		try: func(in *inside) outcome {
			_, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			list := []outcome{refused("socket", err, unix.ESOCKTNOSUPPORT)}
			if pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err == nil {
				to := &unix.SockaddrUnix{Name: in.Sockets["datagrams"]}
				unix.Sendto(pair[0], []byte("escape"), 0, to)
				unix.Sendmsg(pair[0], []byte("escape"), nil, to, 0)
			}
			return all(list...)
		},
	},
	{
		name: "a FIFO elsewhere", tried: "writing to a FIFO outside of the writable directories that a process of the host reads",
		how: olderFIFO, untouched: unreached("fifo"), try: func(in *inside) outcome { return writeFIFO(filepath.Join(in.Elsewhere, "fifo")) },
	},
	{
		name: "a FIFO in HOME", tried: "writing to one that stood before the start, also by a hard link to it and after a rename by the program",
		how: olderFIFO + "; on replay layers hide it", untouched: unreached("homefifo"), try: func(in *inside) outcome {
			path := filepath.Join(in.Home, "fifo")
			hard, moved := path+".h", path+".m"
			list := []outcome{writeFIFO(path)}
			if os.Link(path, hard) == nil {
				list = append(list, writeFIFO(hard))
				os.Remove(hard)
			}
			if os.Rename(path, moved) == nil {
				list = append(list, writeFIFO(moved))
				os.Rename(moved, path)
			}
			return all(list...)
		},
	},
	{
		name: "reading a FIFO", tried: "opening a FIFO elsewhere for reading, to which a process of the host may write",
		how: "opens for reading are not looked at: run as a user who may not open it", out: always, try: func(in *inside) outcome {
			f, err := os.OpenFile(filepath.Join(in.Elsewhere, "fifo"), os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				return refused("open", err, unix.EACCES, unix.ENOENT)
			}
			f.Close()
			return out("opened")
		},
	},
	{
		name: "who else has sockets", tried: "/proc/net/unix: Unix sockets of the host", how: "a network namespace of its own",
		try: func(in *inside) outcome {
			// The far end of a connection that was made from inside is listed, so only what is never reached counts.
			data, err := os.ReadFile("/proc/self/net/unix")
			if err != nil {
				return out("/proc/net/unix: %v", err)
			}
			for _, what := range []string{"abstract", "x11", "home", "temp", "work"} {
				if strings.Contains(string(data), in.Sockets[what]) {
					return out("/proc/net/unix names %s", in.Sockets[what])
				}
			}
			return held("not listed")
		},
	},
	{
		name: "System V memory, semaphores, queues", tried: "shmget, semget, msgget with the keys of the host's objects",
		how: "an IPC namespace of its own: ENOENT", try: func(in *inside) outcome {
			key := uintptr(in.Key)
			return all(refused("shmget", call(unix.SYS_SHMGET, key, 0, 0), unix.ENOENT),
				refused("semget", call(unix.SYS_SEMGET, key, 0, 0), unix.ENOENT), refused("msgget", call(unix.SYS_MSGGET, key, 0), unix.ENOENT))
		},
	},
	{
		name: "POSIX queues", tried: "mq_open of a queue of the host", how: "an IPC namespace of its own: ENOENT",
		try: func(in *inside) outcome {
			return refused("mq_open", openQueue(in.Queue, unix.O_RDWR), unix.ENOENT, unix.ENOSYS)
		},
	},
	{
		name: "shared memory in /dev/shm", tried: "opening an object of the host", how: "a /dev/shm of its own: ENOENT",
		try: func(in *inside) outcome {
			_, err := os.ReadFile(filepath.Join("/dev/shm", in.Token))
			return refused("open", err, unix.ENOENT)
		},
	},
	{
		name: "keyrings", tried: "the caller's session keyring: keyctl, add_key, request_key", how: "the filter: EPERM", try: func(in *inside) outcome {
			_, errSearch := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", in.Token, 0)
			_, errAdd := unix.AddKey("user", in.Token, []byte("escape"), unix.KEY_SPEC_SESSION_KEYRING)
			_, errRequest := unix.RequestKey("user", in.Token, "", 0)
			return all(refused("keyctl", errSearch, unix.EPERM), refused("add_key", errAdd, unix.EPERM), refused("request_key", errRequest, unix.EPERM))
		},
	},
}

// dialChanging connects for a while to a link that leads to a socket of ours and to one of the host's in turn.
func dialChanging(in *inside) outcome {
	own, link := filepath.Join(in.Home, "own.sock"), filepath.Join(in.Home, "changing.sock")
	l, err := net.Listen("unix", own)
	if err != nil {
		return out("listen: %v", err)
	}
	defer l.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				os.Remove(link)
				return
			default:
			}
			os.Symlink([]string{own, in.Sockets["renamed"]}[i%2], link+".new")
			os.Rename(link+".new", link)
		}
	}()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	for range 300 {
		if c, err := net.DialTimeout("unix", link, dialLimit); err == nil {
			if c.RemoteAddr().String() != own {
				c.Close()
				close(stop)
				<-done
				return out("connected to %s", c.RemoteAddr())
			}
			c.Close()
		}
	}
	close(stop)
	<-done
	return held("ours or nothing")
}

// dialUnix tells what is reached by path, as a stream.
func dialUnix(path string) outcome {
	c, err := net.DialTimeout("unix", path, dialLimit)
	if err == nil {
		c.Close()
		return out("connected to %s", filepath.Base(path))
	}
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		err = sys.Err
	}
	return refused(fmt.Sprintf("connect %s", filepath.Base(path)), err, unix.ECONNREFUSED, unix.ENOENT, unix.EACCES)
}
