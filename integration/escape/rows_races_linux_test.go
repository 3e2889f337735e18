//go:build escape

package escape

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raceTime is how long a race is run.
const raceTime = 500 * time.Millisecond

// The recorder keeps what stands in a file before the program changes it. In these rows the program names one file and
// means another: what our keys' directory holds must not be kept, and nobody may be made to wait for ever.
var raceRows = []row{
	{
		name: "a symbolic link that changes", tried: "opening a link for writing that another thread turns from a file of the program to our keys and back",
		how: "the recorder looks through the program's own mounts, where the keys are covered", untouched: keysUnread, try: func(in *inside) outcome {
			dir, innocent := raceDir(in)
			link, other := filepath.Join(dir, "link"), filepath.Join(dir, "other")
			return race(func() {
				for _, to := range []string{innocent, filepath.Join(in.Config, "mine")} {
					os.Remove(other)
					os.Symlink(to, other)
					os.Rename(other, link)
				}
			}, func() { openToWrite(link) })
		},
	},
	{
		name: "a directory that changes", tried: "the same with a directory that is exchanged for a link to our keys' directory, for open, truncate, rename, link, unlink and chmod",
		how: "the same", untouched: keysUnread, try: func(in *inside) outcome {
			dir, _ := raceDir(in)
			real, link := filepath.Join(dir, "real"), filepath.Join(dir, "swapped")
			os.Mkdir(real, 0o755)
			os.Symlink(in.Config, link)
			mine := filepath.Join(real, "mine")
			return race(func() { unix.Renameat2(unix.AT_FDCWD, real, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) }, func() {
				openToWrite(mine)
				unix.Truncate(mine, 1)
				unix.Chmod(mine, 0o644)
				unix.Link(mine, filepath.Join(dir, "linked"))
				unix.Rename(mine, filepath.Join(dir, "renamed"))
				unix.Unlink(filepath.Join(dir, "linked"))
				unix.Unlink(filepath.Join(dir, "renamed"))
			})
		},
	},
	{
		name: "a path that changes in memory", tried: "an open for writing whose path another thread overwrites between a file of the program and our keys",
		how: "what the kernel opens is decided by the mounts, whatever the recorder read", untouched: keysUnread, try: func(in *inside) outcome {
			_, innocent := raceDir(in)
			var paths [2][256]byte
			copy(paths[0][:], innocent)
			copy(paths[1][:], filepath.Join(in.Config, "mine"))
			shared := paths[0]
			n := 0
			return race(func() { n++; copy(shared[:], paths[n%2][:]) }, func() {
				fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&shared)), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644, 0, 0)
				if errno == 0 {
					unix.Close(int(fd))
				}
			})
		},
	},
	{
		name: "a file that becomes a FIFO", tried: "opening a file for writing that is exchanged for a FIFO that nobody writes to", how: "the recorder opens nothing that could make it wait",
		untouched: keysUnread, try: func(in *inside) outcome {
			dir, innocent := raceDir(in)
			fifo := filepath.Join(dir, "fifo")
			unix.Mkfifo(fifo, 0o644)
			return race(func() { unix.Renameat2(unix.AT_FDCWD, innocent, unix.AT_FDCWD, fifo, unix.RENAME_EXCHANGE) }, func() {
				if fd, err := unix.Open(innocent, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
					unix.Close(fd)
				}
				unix.Truncate(innocent, 0)
				unix.Chmod(innocent, 0o644)
			})
		},
	},
	{
		name: "other names of the same", tried: "writing to our keys by /proc/self/root, /proc/self/cwd, /proc/self/fd/N, `..` and a descriptor of the directory",
		how: "each leads to what covers them: EROFS, ENOENT", untouched: keysUnread, try: func(in *inside) outcome {
			list := []outcome{}
			fd, err := unix.Open(in.Config, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return out("open: %v", err)
			}
			defer unix.Close(fd)
			for _, path := range []string{
				"/proc/self/root" + in.Config, fmt.Sprintf("/proc/self/fd/%d", fd), in.Work + "/../home/.config/tapedeck",
				"/proc/self/cwd/../home/.config/tapedeck", fmt.Sprintf("/proc/self/fd/%d/../tapedeck", fd),
			} {
				f, err := os.OpenFile(path+"/mine", os.O_WRONLY|os.O_CREATE, 0o644)
				if err == nil {
					f.Close()
				}
				list = append(list, refused(path, err, unix.EROFS, unix.ENOENT))
			}
			at, err := unix.Openat(fd, "mine", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
			if err == nil {
				unix.Close(at)
			}
			return all(append(list, refused("openat", err, unix.EROFS))...)
		},
	},
	{
		name: "the path of the keys in a root of its own", tried: "in a mount namespace of its own, with a tmpfs over HOME: writing a file that has the path of our keys there",
		how: "what the recorder keeps by that path is the jail's, where it is covered", spaces: unix.CLONE_NEWNS, untouched: keysUnread, try: func(in *inside) outcome {
			if err := unix.Mount("tmpfs", in.Home, "tmpfs", 0, ""); err != nil {
				return refused("tmpfs", err, unix.EPERM)
			}
			if err := os.MkdirAll(in.Config, 0o755); err != nil {
				return refused("mkdir", err, unix.EOVERFLOW)
			}
			mine := filepath.Join(in.Config, "mine")
			openToWrite(mine)
			os.WriteFile(mine, []byte("other keys"), 0o644)
			os.Rename(mine, mine+"2")
			os.Remove(mine + "2")
			return held("its own file")
		},
	},
	{
		name: "a file without end", tried: "writing to a sparse file of 1 TiB, truncating it and removing it", how: "the recorder keeps files of up to 64 MiB, and says what it did not keep",
		try: func(in *inside) outcome {
			dir, _ := raceDir(in)
			path := filepath.Join(dir, "huge")
			for range 3 {
				openToWrite(path)
				if err := os.Truncate(path, 1<<40); err != nil {
					return held("no such large file here")
				}
				openToWrite(path)
				os.Truncate(path, 1)
				os.Truncate(path, 1<<40)
				os.Remove(path)
			}
			return held("it went on")
		},
	},
}

// raceDir makes a directory for one race, in the work tree, with a file that may be changed.
func raceDir(in *inside) (dir, innocent string) {
	dir = filepath.Join(in.Work, fmt.Sprint("race-", os.Getpid()))
	innocent = filepath.Join(dir, "innocent")
	os.Mkdir(dir, 0o755)
	os.WriteFile(innocent, []byte("innocent\n"), 0o644)
	return dir, innocent
}

// race runs both again and again, each on threads of its own, for a while.
func race(change, use func()) outcome {
	var stop atomic.Bool
	var running sync.WaitGroup
	for _, f := range []func(){change, use, use} {
		running.Go(func() {
			runtime.LockOSThread()
			for !stop.Load() {
				f()
			}
		})
	}
	time.Sleep(raceTime)
	stop.Store(true)
	running.Wait()
	return held("the race was lost")
}

func openToWrite(path string) {
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644); err == nil {
		unix.Close(fd)
	}
}

// keysUnread is nil where the recording holds nothing of what is covered, and that is as it was.
func keysUnread(o *outside) error {
	data, err := os.ReadFile(filepath.Join(o.Config, "mine"))
	if err != nil {
		return err
	}
	if string(data) != o.covered {
		return fmt.Errorf("our keys were changed: %.60q", data)
	}
	if o.Recording == "" {
		return nil
	}
	return filepath.WalkDir(o.Recording, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(o.covered)) {
			err = fmt.Errorf("%s holds what is covered", path)
		}
		return err
	})
}
