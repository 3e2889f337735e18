package jail

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// randomDevices are the devices of /dev that give random bytes.
var randomDevices = []string{"random", "urandom"}

// randomFiles stand in the place of random devices: FIFOs, of which each open gets one of its own. What lies at the path is
// filled, so that nobody has to wait; once it was opened the next one takes its place. Of two opens within that moment both
// get the same FIFO, and share what comes.
type randomFiles struct {
	to    Inputs
	dir   *os.File // randomDir
	tasks sync.WaitGroup
	files []*os.File // of inotify; closed, they end it
}

// newRandomFiles puts FIFOs into dir, which it takes over.
func newRandomFiles(to Inputs, dir *os.File) (*randomFiles, error) {
	r := &randomFiles{to: to, dir: dir}
	for _, name := range randomDevices {
		if err := r.serve(name); err != nil {
			r.close()
			return nil, fmt.Errorf("/dev/%s: %w", name, err)
		}
	}
	return r, nil
}

// close ends it when everything inside has ended.
func (r *randomFiles) close() {
	for _, f := range r.files {
		f.Close()
	}
	r.tasks.Wait()
	r.dir.Close()
}

func (r *randomFiles) serve(name string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init", err)
	}
	opens := os.NewFile(uintptr(fd), "inotify")
	r.files = append(r.files, opens)
	f, err := r.place(name, opens)
	if err != nil {
		return err
	}
	r.tasks.Go(func() {
		for f != nil {
			if !wasOpened(opens) {
				f.close()
				return
			}
			was := f
			if f, err = r.place(name, opens); err != nil {
				f = nil // the next open finds the old one
			}
			r.tasks.Go(was.feed)
		}
	})
	return nil
}

// wasOpened waits for an open; false once it is no longer waited for.
func wasOpened(opens *os.File) bool {
	var buf [unix.SizeofInotifyEvent + unix.NAME_MAX + 1]byte
	for {
		n, err := opens.Read(buf[:])
		if err != nil || n < unix.SizeofInotifyEvent {
			return false
		}
		if e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[0])); e.Mask&unix.IN_OPEN != 0 {
			return true
		}
	}
}

// A randomFile is one FIFO.
type randomFile struct {
	from Filler
	hold *os.File // open for both, until somebody else has it
}

// place makes a FIFO, fills it, and puts it where name is.
func (r *randomFiles) place(name string, opens *os.File) (f *randomFile, err error) {
	dir := int(r.dir.Fd())
	fresh := ".next-" + name
	if err := unix.Mknodat(dir, fresh, unix.S_IFIFO|0o600, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, os.NewSyscallError("mknod", err)
	}
	if err := unix.Fchmodat(dir, fresh, 0o666, 0); err != nil {
		return nil, os.NewSyscallError("chmod", err)
	}
	fd, err := unix.Openat(dir, fresh, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	f = &randomFile{from: r.to.Opened(), hold: os.NewFile(uintptr(fd), fresh)}
	var b [randomChunk]byte
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, randomChunk)
	f.from.Fill(b[:])
	_, err = f.hold.Write(b[:])
	if err == nil {
		err = withFD(opens, func(at int) error {
			_, err := unix.InotifyAddWatch(at, "/proc/self/fd/"+strconv.Itoa(fd), unix.IN_OPEN|unix.IN_ONESHOT)
			return err
		})
	}
	if err == nil {
		err = unix.Renameat(dir, fresh, dir, name)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// randomChunk is how many bytes are made at once: as many as a pipe of one page holds.
const randomChunk = pageSize

func (f *randomFile) close() { f.hold.Close() }

// feed writes until nobody reads any more.
func (f *randomFile) feed() {
	var fd int
	err := withFD(f.hold, func(hold int) (err error) {
		fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(hold), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	f.close()
	if err != nil {
		return
	}
	to := os.NewFile(uintptr(fd), "random")
	defer to.Close()
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, filler{f.from}, make([]byte, randomChunk)) // EPIPE at the end
}

// filler reads random bytes.
type filler struct{ from Filler }

func (f filler) Read(b []byte) (int, error) {
	f.from.Fill(b)
	return len(b), nil
}
