package main

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

var socketRows = []row{
	{
		name: "abstract Unix sockets", tried: "connections to abstract sockets of the host, X11's among them",
		how: "they belong to the host's network namespace: ECONNREFUSED", untouched: unreached("abstract", "x11"),
		try: func(in *inside) outcome { return all(dialUnix(in.Sockets["abstract"]), dialUnix(in.Sockets["x11"])) },
	},
	{
		name: "Unix sockets by path", tried: "connections to sockets that stood before the start: in HOME, the temporary directory, the work tree, /run, XDG_RUNTIME_DIR",
		how:       "each is covered by an empty file, /run and the runtime directory are hidden whole; on replay layers hide them",
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
		how: "nothing covers what was not there at the start; a replay's layers do. Keep servers' sockets in /run, or record with --isolated",
		out: recording, untouched: nil, try: func(in *inside) outcome {
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
	{
		name: "a Unix socket that was renamed", tried: "a connection to a socket in HOME that was bound by another name",
		how: "/proc/net/unix lists the name by which it was bound, and only what it lists is covered; a replay's layers hide it", out: recording,
		try: func(in *inside) outcome { return dialUnix(in.Sockets["renamed"]) },
	},
	{
		name: "a Unix socket elsewhere, bound by a relative name", tried: "a connection to one outside HOME, the temporary directory, the work tree and /run that everybody may open",
		how: "it is listed without a directory, and read-only mounts do not close sockets: run as a user who may not open it", out: always,
		try: func(in *inside) outcome { return dialUnix(in.Sockets["relative"]) },
	},
	{
		name: "a FIFO elsewhere", tried: "writing to a FIFO outside of the writable directories that a process of the host reads",
		how: "read-only mounts do not close FIFOs: run as a user who may not open it", out: always, try: func(in *inside) outcome {
			f, err := os.OpenFile(filepath.Join(in.Elsewhere, "fifo"), os.O_WRONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				return refused("open", err, unix.EACCES, unix.ENXIO, unix.ENOENT)
			}
			defer f.Close()
			_, err = f.WriteString("escape")
			return refused("write", err)
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
