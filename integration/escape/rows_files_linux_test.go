//go:build escape

package escape

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

var fileRows = []row{
	{
		name: "files elsewhere", tried: "outside of HOME, work tree and temporary directory, in a directory of the same user: write, truncate, chmod, chown, utimes, xattr, " +
			"mkdir, mknod, unlink, rename, link and symlink", how: "read-only mounts: EROFS", try: tryElsewhere, untouched: func(o *outside) error {
			path := filepath.Join(o.Elsewhere, "file")
			data, err := os.ReadFile(path)
			if err == nil && string(data) != o.Token+"\n" {
				err = fmt.Errorf("%s was changed", path)
			}
			return err
		},
	},
	{
		name: "links out", tried: "a hard link and a rename from elsewhere into HOME", how: "another mount: EXDEV or EROFS", try: func(in *inside) outcome {
			from, to := filepath.Join(in.Elsewhere, "file"), filepath.Join(in.Home, "taken")
			return all(refused("link", errnoOf(os.Link(from, to)), unix.EXDEV, unix.EROFS), refused("rename", errnoOf(os.Rename(from, to)), unix.EXDEV, unix.EROFS))
		},
	},
	{
		name: "a mount below", tried: "writing into what is mounted below a writable directory, as HOME is one: on the disk while recording",
		how: "on a replay, and with `--isolated`, a layer of its own lies over each mount", try: tryMountBelow, untouched: func(o *outside) error {
			by, err := os.ReadFile(filepath.Join(o.Below, "by"))
			if err == nil && !strings.HasSuffix(string(by), "plain.rec") {
				err = fmt.Errorf("%s was written to by %q", o.Below, by)
			}
			return err
		},
	},
	{
		name: "files by handle", tried: "name_to_handle_at, then open_by_handle_at: a file that is covered, by its number", how: "the filter: EPERM",
		try: func(in *inside) outcome {
			handle, id, err := unix.NameToHandleAt(unix.AT_FDCWD, in.Home, 0)
			if err != nil {
				return all(held("no handles here"), refused("open_by_handle_at", call(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0), unix.EPERM))
			}
			_, err = unix.OpenByHandleAt(id, handle, unix.O_RDONLY)
			return refused("open_by_handle_at", err, unix.EPERM)
		},
	},
	{
		name: "mounts", tried: "mount, bind, remount, umount2, pivot_root, chroot, open_tree, move_mount, fsopen, fspick, mount_setattr", how: "no capability: EPERM",
		try: tryMounts,
	},
	{
		name: "sysctls", tried: "opening every file of /proc/sys for writing: core_pattern, modprobe, overcommit, …", how: "/proc/sys is read-only: EROFS",
		try: func(*inside) outcome { return walkWritable("/proc/sys", nil) },
	},
	{
		name: "the rest of /proc", tried: "opening everything else in /proc for writing: sysrq-trigger, irq, dynamic_debug, pressure, kcore, …",
		how: "what belongs to no process is read-only: EROFS", try: func(*inside) outcome {
			return walkWritable("/proc", func(path string) bool {
				name := strings.TrimPrefix(path, "/proc/")
				return name == "sys" || name == "self" || name == "thread-self" || name[0] >= '0' && name[0] <= '9'
			})
		},
	},
	{
		name: "/sys", tried: "opening files of /sys for writing: uevent_helper, power, PCI resources, modules, debugfs, cgroups, at most 30,000", how: "read-only: EROFS",
		try: func(*inside) outcome { return walkWritable("/sys", nil) },
	},
	{
		name: "cgroups", tried: "release_agent, cgroup.procs, cgroup.freeze, cgroup.kill and devices.allow of every hierarchy and of the recorder's own group",
		how: "read-only: EROFS", try: tryCgroups,
	},
	{
		name: "devices", tried: "kmsg, mem, port, kvm, fuse, vsock, userfaultfd, loop, disks, net/tun, input, uinput, and what else /dev lists", how: "a /dev of its own, with seven devices",
		try: tryDevices,
	},
	{
		name: "device nodes", tried: "mknod of the null device and the kernel's log; opening a node that stood in HOME before", how: "EPERM; nodev: EACCES", try: tryNodes,
	},
	{
		name: "kernel memory and log by file", tried: "/proc/kcore, /proc/kmsg, /proc/kpageflags, /sys/kernel/debug, /sys/kernel/tracing, /sys/kernel/security", how: "EPERM, EACCES or empty",
		try: func(*inside) outcome {
			var list []outcome
			for _, path := range []string{"/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/proc/vmcore", "/sys/firmware/efi/efivars/escape"} {
				f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
				if err == nil {
					f.Close()
				}
				list = append(list, refused(path, err, unix.EPERM, unix.EACCES, unix.ENOENT))
			}
			for _, dir := range []string{"/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf"} {
				if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
					list = append(list, walkWritable(dir, nil))
				}
			}
			return all(list...)
		},
	},
	{
		name: "a full disk", tried: "32 MiB into a writable directory, a file system of 8 MiB while recording", how: "ENOSPC for the program; the recorder writes elsewhere, and the recording is sound",
		try: tryFullDisk,
	},
	{
		name: "memory", tried: "64 MiB in /dev/shm", how: "memory, CPU, disk and the user's own limits (inotify watches, locks on files that it may read) are shared: " +
			"put untrusted programs into a cgroup or a virtual machine", out: always, try: func(*inside) outcome {
			const path = "/dev/shm/escape"
			defer os.Remove(path)
			return refused("64 MiB of memory", os.WriteFile(path, make([]byte, 64<<20), 0o600), unix.ENOSPC, unix.ENOMEM)
		},
	},
	{
		name: "a lock on a file of the host", tried: "flock, exclusive, on a file elsewhere that may only be read", how: "whoever may read a file may lock it: run as a user who may not",
		out: always, try: func(in *inside) outcome {
			f, err := os.Open(filepath.Join(in.Elsewhere, "file"))
			if err != nil {
				return out("open: %v", err)
			}
			defer f.Close()
			return refused("flock", unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EPERM, unix.EROFS)
		},
	},
}

func tryElsewhere(in *inside) outcome {
	dir, file := in.Elsewhere, filepath.Join(in.Elsewhere, "file")
	list := []outcome{
		writeRefused(file), makeRefused(filepath.Join(dir, "escape")),
		refused("truncate", errnoOf(os.Truncate(file, 0)), unix.EROFS), refused("chmod", errnoOf(os.Chmod(file, 0o600)), unix.EROFS),
		refused("chown", errnoOf(os.Lchown(file, os.Getuid(), os.Getgid())), unix.EROFS),
		refused("utimes", unix.Utimes(file, nil), unix.EROFS), refused("setxattr", unix.Setxattr(file, "user.escape", []byte("1"), 0), unix.EROFS),
		refused("unlink", unix.Unlink(file), unix.EROFS), refused("rename", unix.Rename(file, file+"2"), unix.EROFS),
		refused("link", unix.Link(file, file+"2"), unix.EROFS), refused("symlink", unix.Symlink(file, file+"2"), unix.EROFS),
		refused("mkfifo", unix.Mkfifo(file+"2", 0o600), unix.EROFS),
	}
	_, err := os.OpenFile(filepath.Join(dir, "new"), os.O_CREATE|os.O_WRONLY, 0o600)
	tmp, errTmp := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if errTmp == nil {
		unix.Close(tmp)
	}
	return all(append(list, refused("create", err, unix.EROFS), refused("O_TMPFILE", errTmp, unix.EROFS))...)
}

// tryMounts has no capability. What would be mounted is nothing, or lies where the program may write anyway.
func tryMounts(in *inside) outcome {
	dir := in.Home
	list := []outcome{
		refused("mount", unix.Mount("tmpfs", dir, "tmpfs", 0, ""), unix.EPERM),
		refused("bind", unix.Mount(in.Elsewhere, dir, "", unix.MS_BIND, ""), unix.EPERM),
		refused("remount", unix.Mount("", in.Elsewhere, "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.EPERM),
		refused("umount", unix.Unmount(in.Config, unix.MNT_DETACH), unix.EPERM),
		refused("pivot_root", unix.PivotRoot(dir, dir), unix.EPERM),
		refused("chroot", unix.Chroot(dir), unix.EPERM),
	}
	_, errTree := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE)
	_, errFS := unix.Fsopen("tmpfs", 0)
	_, errPick := unix.Fspick(unix.AT_FDCWD, dir, 0)
	return all(append(list, refused("open_tree", errTree, unix.EPERM), refused("fsopen", errFS, unix.EPERM), refused("fspick", errPick, unix.EPERM),
		refused("move_mount", unix.MoveMount(unix.AT_FDCWD, dir, unix.AT_FDCWD, dir, 0), unix.EPERM),
		refused("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, in.Elsewhere, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}), unix.EPERM))...)
}

// maxWalked bounds how many files of one tree are tried.
const maxWalked = 30_000

// walkWritable opens every file below root for writing, and writes nothing. skip leaves paths out; nil leaves none.
func walkWritable(root string, skip func(path string) bool) outcome {
	var opened []string
	tried := 0
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case path != root && skip != nil && skip(path):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case tried >= maxWalked:
			return filepath.SkipAll
		case !d.Type().IsRegular():
			return nil
		}
		tried++
		if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(fd)
			opened = append(opened, path)
		}
		return nil
	})
	if len(opened) > 0 {
		return out("%d of %d files could be opened for writing: %s", len(opened), tried, joined(opened[:min(len(opened), 5)]))
	}
	return held("no file opens for writing")
}

func tryCgroups(in *inside) outcome {
	var list []outcome
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return out("mountinfo: %v", err)
	}
	dirs := []string{"/sys/fs/cgroup"}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); strings.Contains(line, " - cgroup") && len(f) > 4 {
			dirs = append(dirs, f[4])
		}
	}
	if in.Cgroup != "" {
		dirs = append(dirs, in.Cgroup)
	}
	for _, dir := range dirs {
		for _, name := range []string{"release_agent", "cgroup.procs", "tasks", "cgroup.freeze", "cgroup.kill", "devices.allow", "notify_on_release", "cgroup.subtree_control"} {
			list = append(list, writeRefused(filepath.Join(dir, name)))
		}
		list = append(list, makeRefused(filepath.Join(dir, "escape")))
	}
	return all(list...)
}

func tryDevices(*inside) outcome {
	known := "null zero full random urandom tty console fd stdin stdout stderr ptmx pts shm"
	entries, err := os.ReadDir("/dev")
	if err != nil {
		return out("/dev: %v", err)
	}
	for _, e := range entries {
		if !strings.Contains(" "+known+" ", " "+e.Name()+" ") {
			return out("/dev has %s", e.Name())
		}
	}
	var list []outcome
	for _, name := range []string{"kmsg", "mem", "port", "kvm", "fuse", "vsock", "userfaultfd", "loop0", "loop-control", "sda", "vda", "nvme0n1", "net/tun",
		"input/event0", "uinput", "hpet", "cpu/0/msr", "vhost-net", "dri/card0", "snd/timer", "binder", "autofs", "btrfs-control", "mapper/control"} {
		fd, err := unix.Open("/dev/"+name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			unix.Close(fd)
		}
		list = append(list, refused(name, err, unix.ENOENT, unix.ENOTDIR))
	}
	return all(append(list, makeRefused("/dev/escape"))...)
}

func tryNodes(in *inside) outcome {
	list := []outcome{mknodRefused(filepath.Join(in.Home, "node"), 1, 3), mknodRefused("/dev/shm/node", 1, 11)}
	if in.Device != "" {
		fd, err := unix.Open(in.Device, unix.O_RDWR|unix.O_NONBLOCK, 0)
		if err == nil {
			unix.Close(fd)
		}
		list = append(list, refused("opening a node", err, unix.EACCES))
	}
	return all(list...)
}

func mknodRefused(path string, major, minor uint32) outcome {
	err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor)))
	if err == nil {
		fd, errOpen := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if errOpen == nil {
			unix.Close(fd)
			err = nil
		} else {
			err = errOpen // a node that nobody can open is none
		}
		os.Remove(path)
	}
	return refused("mknod", err, unix.EPERM, unix.EACCES, unix.EOVERFLOW)
}

// tryMountBelow writes in which run it is. That it cannot write would be a replay that is not as the recording.
func tryMountBelow(in *inside) outcome {
	if in.Below == "" {
		return notTried("only root can mount on the host")
	}
	if err := os.WriteFile(filepath.Join(in.Small, "mounted", "by"), []byte(filepath.Base(in.Recording)), 0o644); err != nil {
		return out("writing: %v", err)
	}
	return held("written where it may be")
}

func tryFullDisk(in *inside) outcome {
	path := filepath.Join(in.Small, "full")
	f, err := os.Create(path)
	if err != nil {
		return out("create: %v", err)
	}
	defer os.Remove(path)
	defer f.Close()
	block := bytes.Repeat([]byte("full"), 1<<18)
	for range 32 {
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			return held("ENOSPC")
		} else if err != nil {
			return out("write: %v", err)
		}
	}
	return held("there was room")
}
