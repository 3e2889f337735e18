//go:build escape

package escape

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// In these rows the try has every capability, in a user namespace of its own inside the jail.
var nestedRows = []row{
	{
		name: "uncovering what is covered", tried: "umount of our keys' cover, the recording's, /run, /proc/sys, /dev, and of sockets", how: "the jail's mounts are locked: EINVAL",
		spaces: unix.CLONE_NEWNS, try: func(in *inside) outcome {
			var list []outcome
			for _, path := range []string{in.Config, in.Recording, in.Sockets["home"], "/run", "/proc/sys", "/proc/1", "/dev", "/dev/null", "/proc", "/"} {
				if path != "" {
					list = append(list, refused("umount "+path, unix.Unmount(path, unix.MNT_DETACH), unix.EINVAL, unix.EPERM, unix.ENOENT, unix.EBUSY))
				}
			}
			return all(append(list, keysCovered(in, in.Config))...)
		},
	},
	{
		name: "writable again", tried: "remounting /, a directory elsewhere, /proc/sys, /sys, /proc/1 for writing: mount and mount_setattr", how: "their flags are locked: EPERM",
		spaces: unix.CLONE_NEWNS, try: func(in *inside) outcome {
			var list []outcome
			for _, path := range []string{"/", in.Elsewhere, "/proc/sys", "/sys", "/proc/1", "/run"} {
				if unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, "") != nil {
					path = "/" // no mount of its own, and none can be made
				}
				list = append(list, refused("remount "+path, unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.EPERM, unix.EINVAL),
					refused("mount_setattr "+path, unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}), unix.EPERM, unix.EINVAL))
			}
			return all(append(list, makeRefused(filepath.Join(in.Elsewhere, "escape")), writeRefused("/proc/sys/kernel/core_pattern"))...)
		},
	},
	{
		name: "devices again", tried: "remounting HOME with devices, and mknod there", how: "nodev is locked: EPERM", spaces: unix.CLONE_NEWNS, try: func(in *inside) outcome {
			list := []outcome{mknodRefused(filepath.Join(in.Home, "node"), 1, 3),
				refused("remount", unix.Mount("", in.Home, "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.EPERM, unix.EINVAL)}
			if unix.Mount("tmpfs", in.Home, "tmpfs", 0, "") == nil {
				list = append(list, mknodRefused(filepath.Join(in.Home, "node"), 1, 3))
			}
			return all(list...)
		},
	},
	{
		name: "a view without covers", tried: "binding the directories above the covers without what is mounted there: bind, open_tree, an overlay over them",
		how: "what is covered stays covered in copies: EINVAL", spaces: unix.CLONE_NEWNS, try: tryUncoveredView,
	},
	{
		name: "a fresh /proc or /sys", tried: "mounting proc in a PID namespace, sysfs in a network namespace of its own, writable", how: "the kernel refuses while parts of ours are covered: EPERM",
		spaces: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET, try: func(in *inside) outcome {
			list := []outcome{refused("proc", unix.Mount("proc", in.Home, "proc", 0, ""), unix.EPERM)}
			err := unix.Mount("sysfs", in.Home, "sysfs", 0, "")
			return all(append(list, refused("sysfs", err, unix.EPERM))...)
		},
	},
	{
		name: "control groups of its own", tried: "mounting cgroup2, and cgroup of every controller, in a cgroup namespace of its own: the recorder's own group, to freeze or kill",
		how: "no cgroup namespaces inside (user.max_cgroup_namespaces is 0): ENOSPC", spaces: unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP, try: tryCgroupMount,
	},
	{
		name: "file systems of the kernel", tried: "mounting devtmpfs, debugfs, tracefs, securityfs, configfs, efivarfs, binfmt_misc, fusectl, ext4", how: "EPERM, or not for user namespaces",
		spaces: unix.CLONE_NEWNS, try: func(in *inside) outcome {
			var list []outcome
			for _, kind := range []string{"devtmpfs", "debugfs", "tracefs", "securityfs", "configfs", "efivarfs", "fusectl", "ext4", "pstore", "resctrl", "nfsd", "9p"} {
				list = append(list, refused(kind, unix.Mount("/dev/vda", in.Home, kind, 0, ""), unix.EPERM, unix.ENODEV, unix.ENOENT, unix.ENOTBLK, unix.EACCES, unix.EINVAL))
			}
			return all(list...)
		},
	},
	{
		name: "a root of its own", tried: "pivot_root and chroot into a new tmpfs, then looking above it", how: "what is above is what the jail shows", spaces: unix.CLONE_NEWNS, try: func(in *inside) outcome {
			if err := unix.Mount("tmpfs", in.Home, "tmpfs", 0, ""); err != nil {
				return refused("tmpfs", err, unix.EPERM)
			}
			old := filepath.Join(in.Home, "old")
			if err := os.Mkdir(old, 0o755); err != nil {
				return refused("mkdir", err, unix.EOVERFLOW)
			}
			if err := unix.PivotRoot(in.Home, old); err != nil {
				return refused("pivot_root", err, unix.EPERM, unix.EINVAL)
			}
			return all(keysCovered(in, "/old"+in.Config), makeRefused("/old"+filepath.Join(in.Elsewhere, "escape")))
		},
	},
	{
		name: "namespaces of process 1", tried: "setns to its user, network, mount, PID namespaces; a signal, a limit and ptrace with every capability", how: "capabilities of a nested user namespace count for nothing there",
		spaces: unix.CLONE_NEWNS, try: func(*inside) outcome {
			var list []outcome
			for _, name := range []string{"user", "net", "mnt", "pid", "uts", "ipc"} {
				fd, err := unix.Open("/proc/1/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err == nil {
					err = unix.Setns(fd, 0)
					unix.Close(fd)
				}
				list = append(list, refused("ns/"+name, err, unix.EACCES, unix.EPERM))
			}
			return all(append(list, refused("ptrace", call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1), unix.EPERM), procFiles("/proc/1"))...)
		},
	},
	{
		name: "kernel calls with capabilities", tried: "modules, clock, kexec, reboot, swap, accounting, quota, the kernel's log, in a user namespace of its own", how: "they ask for capabilities on the host: EPERM",
		spaces: unix.CLONE_NEWNS, try: func(in *inside) outcome { return all(privilegedCalls(in)...) },
	},
}

// keysCovered is held where nothing of our keys shows in a directory.
func keysCovered(_ *inside, dir string) outcome {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return held("covered")
	}
	return out("%s shows %s", dir, entries[0].Name())
}

func tryUncoveredView(in *inside) outcome {
	above, to := filepath.Dir(in.Config), filepath.Join(in.Work, "view")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return out("mkdir: %v", err)
	}
	defer os.Remove(to)
	list := []outcome{refused("bind", unix.Mount(above, to, "", unix.MS_BIND, ""), unix.EINVAL, unix.EPERM)}
	tree, err := unix.OpenTree(unix.AT_FDCWD, above, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		list = append(list, keysCovered(in, fmt.Sprintf("/proc/self/fd/%d/tapedeck", tree)))
		unix.Close(tree)
	} else {
		list = append(list, refused("open_tree", err, unix.EINVAL, unix.EPERM))
	}
	if err := unix.Mount(above, to, "", unix.MS_BIND|unix.MS_REC, ""); err == nil {
		inner := filepath.Join(to, "tapedeck")
		list = append(list, refused("umount in the copy", unix.Unmount(inner, unix.MNT_DETACH), unix.EINVAL, unix.EPERM), keysCovered(in, inner))
		unix.Unmount(to, unix.MNT_DETACH)
	}
	// An overlay's lower layer shows what lies below mounts.
	if err := unix.Mount("tmpfs", in.Temp, "tmpfs", 0, ""); err != nil {
		return all(append(list, refused("tmpfs", err, unix.EPERM))...)
	}
	for _, d := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(in.Temp, d), 0o755); err != nil {
			return all(append(list, refused("mkdir", err, unix.EOVERFLOW))...)
		}
	}
	for _, lower := range []string{above, filepath.Dir(above), "/", in.Config} {
		o := fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", lower, in.Temp, in.Temp)
		if err := unix.Mount("overlay", to, "overlay", 0, o); err == nil {
			for _, dir := range []string{to, filepath.Join(to, "tapedeck"), filepath.Join(to, ".config/tapedeck"), filepath.Join(to, in.Config)} {
				if _, err := os.Lstat(filepath.Join(dir, "mine")); err == nil {
					list = append(list, out("an overlay over %s shows our keys", lower))
				}
			}
			unix.Unmount(to, unix.MNT_DETACH)
		}
	}
	return all(list...)
}

func tryCgroupMount(in *inside) outcome {
	var list []outcome
	for _, kind := range [][2]string{{"cgroup2", ""}, {"cgroup", "pids"}, {"cgroup", "memory"}, {"cgroup", "freezer"}, {"cgroup", "devices"}, {"cgroup", "none,name=systemd"}} {
		err := unix.Mount("none", in.Home, kind[0], 0, kind[1])
		if err == nil {
			o := walkWritable(in.Home, nil)
			unix.Unmount(in.Home, unix.MNT_DETACH)
			list = append(list, o)
			continue
		}
		list = append(list, refused(kind[0]+" "+kind[1], err, unix.EPERM, unix.ENODEV, unix.EINVAL, unix.EBUSY, unix.ENOENT))
	}
	return all(list...)
}
