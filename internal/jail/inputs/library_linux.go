package inputs

import (
	"fmt"
	"os"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"golang.org/x/sys/unix"
)

// libraries notify a file of 2 MiB or more that the dynamic linker maps: MAP_DENYWRITE does nothing, and nobody else says it. Most file systems
// align so large a mapping for huge pages, an overlay does not, and then all that is mapped later lies elsewhere: addresses that a program
// prints, and the order of what it sorts by them.
func libraries() filter.Rule {
	const huge = 2 << 20
	return filter.Rule{Nr: unix.SYS_MMAP, When: [][]filter.Condition{{
		filter.Bits(3, unix.MAP_DENYWRITE), filter.NoBits(3, unix.MAP_FIXED|unix.MAP_ANONYMOUS), filter.From(1, huge),
	}}, Then: filter.Notify, Else: filter.Allow}
}

// library has a library that lies in an overlay mapped as the file which the overlay shows, as it was where the run was recorded: that file is
// put in the place of the descriptor. It is opened where it can only be read, whatever the program does with it.
func (in *Answerer) library(c *notify.Call) {
	defer c.GoOn() // with the overlay's where that file cannot be had
	at := int(int32(c.Args[4]))
	link := fmt.Sprintf("/proc/%d/fd/%d", c.Task, at)
	path, err := os.Readlink(link)
	if err != nil {
		return
	}
	dirs, rest := in.plan.Layers(path)
	if len(dirs) == 0 {
		return
	}
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", c.Task, at))
	if err != nil {
		return
	}
	var offset int64
	var flags int
	if _, err := fmt.Sscanf(string(info), "pos: %d\nflags: %o\n", &offset, &flags); err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY {
		return
	}
	var seen unix.Stat_t
	if unix.Stat(link, &seen) != nil {
		return
	}
	for _, dir := range dirs {
		fd, err := openSame(in.layer(dir), rest, &seen)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		if _, err := unix.Seek(fd, offset, unix.SEEK_SET); err == nil {
			_, _ = c.AddFD(fd, at, flags&unix.O_CLOEXEC)
		}
		return
	}
}

// layer returns a layer of an overlay, open; nil where that cannot be.
func (in *Answerer) layer(dir string) *os.File {
	f, ok := in.layers[dir]
	if !ok {
		f, _ = in.openDir(mount.LayerOf(dir))
		in.layers[dir] = f
	}
	return f
}

// openSame opens a file of a layer for reading where it is the one that an overlay shows: nobody can set the time of its last change.
func openSame(layer *os.File, path string, seen *unix.Stat_t) (fd int, err error) {
	if layer == nil {
		return -1, unix.ENOENT
	}
	const within = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV
	is, err := unix.Openat2(int(layer.Fd()), path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: within})
	if err != nil {
		return -1, err
	}
	defer unix.Close(is)
	var st unix.Stat_t
	if err := unix.Fstat(is, &st); err != nil {
		return -1, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(is, &fs); err != nil {
		return -1, err
	}
	if fs.Flags&unix.ST_RDONLY == 0 || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode != seen.Mode || st.Size != seen.Size || st.Mtim != seen.Mtim || st.Ctim != seen.Ctim {
		return -1, unix.ESTALE
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(is), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}
