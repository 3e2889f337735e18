package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A filePeer is what else sees or keeps the changes of a program's files: what a person would get without a recorder.
type filePeer struct {
	name    string // its column
	missing need
	run     func(ctx context.Context, t *trial) (time.Duration, error)
}

// filePeers are the columns beside workloads.
var filePeers = []filePeer{
	{"jail", needJail, runJail},
	{"strace", installed("strace", "apt-get install strace"), runStrace},
	{"FUSE", needFUSE, runFUSE},
	{"overlay", needOverlay, runOverlay},
}

func filePeerNames() []string {
	var out []string
	for _, p := range filePeers {
		out = append(out, p.name)
	}
	return out
}

const filePeersNote = "the columns: the same work by its plain runs in between, in the recorder's jail without a recorder, `strace -f -e trace=file` with its output in a file, " +
	"on fuse-overlayfs over the place, and on the kernel's overlayfs over it (`unshare -Urm`); mounting FUSE is not counted. " +
	"None of the four tells what stood there before, takes secrets out or makes a tape. Both sides begin with a disk that " +
	"has nothing left to write"

// runJail runs the workload in the recorder's jail, with nothing that records.
func runJail(ctx context.Context, t *trial) (time.Duration, error) {
	return t.jailed(ctx, jailedProgram{})
}

// runStrace lists what the workload does to files.
func runStrace(ctx context.Context, t *trial) (time.Duration, error) {
	out := filepath.Join(t.e.tmp, "strace.out")
	return t.run(ctx, t.place, func(argv []string) []string {
		return append([]string{"strace", "-f", "-e", "trace=file", "-o", out}, argv...)
	})
}

// layers are what an overlay over a place needs.
type layers struct{ upper, work, merged string }

func (t *trial) newLayers() (*layers, error) {
	top, err := t.e.dir("layers")
	if err != nil {
		return nil, err
	}
	l := &layers{filepath.Join(top, "upper"), filepath.Join(top, "work"), filepath.Join(top, "merged")}
	for _, dir := range []string{l.upper, l.work, l.merged} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *layers) options(p *place) string {
	return fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", p.root, l.upper, l.work)
}

// elsewhere is a script that runs its arguments in a work tree: $1.
const elsewhere = `cd "$1" && shift && exec "$@"`

// runFUSE runs the workload on fuse-overlayfs, which keeps what it changes in a layer, in user space.
func runFUSE(ctx context.Context, t *trial) (took time.Duration, err error) {
	l, err := t.newLayers()
	if err != nil {
		return 0, err
	}
	mount := t.e.command(ctx, t.e.tmp, "fuse-overlayfs", "-o", l.options(t.place), l.merged)
	if _, err := do(mount); err != nil {
		return 0, err
	}
	defer func() {
		unmount := t.e.command(context.WithoutCancel(ctx), t.e.tmp, "fusermount3", "-u", l.merged)
		_, errUnmount := do(unmount)
		err = errors.Join(err, errUnmount)
	}()
	p := &place{l.merged}
	return t.run(ctx, p, func(argv []string) []string {
		return append([]string{"sh", "-c", elsewhere, "sh", p.work()}, argv...)
	})
}

// needFUSE tries a mount: the device may be missing, or not for this user.
func needFUSE(context.Context, *env) string {
	for _, program := range []string{"fuse-overlayfs", "fusermount3"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " (install with apt-get install fuse-overlayfs fuse3)"
		}
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Sprintf("a /dev/fuse that can be opened: %v", err)
	}
	f.Close()
	return ""
}

// overlaid mounts an overlay ($1 options, $2 where) and runs its other arguments.
const overlaid = `mount -t overlay overlay -o "$1" "$2" && shift 2 && ` + elsewhere

// runOverlay runs the workload on the kernel's overlay, in a user namespace.
func runOverlay(ctx context.Context, t *trial) (time.Duration, error) {
	l, err := t.newLayers()
	if err != nil {
		return 0, err
	}
	p := &place{l.merged}
	return t.run(ctx, p, func(argv []string) []string {
		return append([]string{"unshare", "-Urm", "sh", "-c", overlaid, "sh", l.options(t.place) + ",userxattr", l.merged, p.work()}, argv...)
	})
}

// needOverlay tries one.
func needOverlay(ctx context.Context, e *env) string {
	p, err := e.newPlace()
	if err != nil {
		return err.Error()
	}
	t := &trial{e: e, place: p, load: command{"true"}}
	if _, err := runOverlay(ctx, t); err != nil {
		return fmt.Sprintf("unshare (util-linux) and overlays in user namespaces: %v", err)
	}
	return ""
}
