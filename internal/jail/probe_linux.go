package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/creack/pty"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
)

// Probe tries each part of the jail for real and says what works. It makes and removes a directory in /var/tmp.
func Probe() []Check {
	if err := Available(); err != nil {
		return []Check{{Name: "namespaces", Detail: err.Error(), Cost: "nothing can be recorded or replayed in a jail"}}
	}
	checks := []Check{{Name: "namespaces", OK: true, Detail: "user, network, mount, PID, UTS and IPC, with a fresh /proc"}}
	j, err := tryJail(nil)
	checks = append(checks, checked("confinement", false, err, "mounts, network, capabilities and system call filter stand, notifications are answered",
		"nothing can be recorded or replayed in a jail"))
	if err != nil {
		return checks
	}
	if list := j.NotCovered(); len(list) > 0 {
		err = errors.New(strings.Join(list, "; "))
	}
	return append(checks,
		checked("evidence", true, err, "refused ports are seen, the number of processes is limited", "recordings list it as not covered"),
		checked("overlay", false, tryOverlay("/var/tmp"), "overlayfs with userxattr, layers in /var/tmp",
			"replay and --isolated need a full copy of the work tree, HOME and TMP"),
		checked("terminal", true, tryPTY(), "a PTY can be opened", "programs run without a terminal"))
}

// checked is the check that err came of; fine and cost say what there is, and what is lost without it.
func checked(name string, evidence bool, err error, fine, cost string) Check {
	if err != nil {
		return Check{Name: name, Evidence: evidence, Detail: err.Error(), Cost: cost}
	}
	return Check{Name: name, Evidence: evidence, OK: true, Detail: fine}
}

// tryJail makes a whole jail but for its program, over o where it is given. It is closed already.
func tryJail(o *mount.Overlay) (*Jail, error) {
	c := &Config{Path: "/", Argv: []string{"probe"}, Dir: "/", TTY: -1, Watch: unwatched{}, Spawns: unwatched{}}
	if o != nil {
		c.Overlays = []mount.Overlay{*o}
	}
	j, err := Start(context.Background(), c)
	if err != nil {
		return nil, err
	}
	return j, j.Close()
}

// unwatched is the watchers of a program that never starts.
type unwatched struct{}

func (unwatched) Spawning(*Spawn) *SpawnAnswer { return nil }

func (unwatched) Changing(*FileCall) (func() error, error) { return nil, nil }

func tryOverlay(base string) error {
	dir, err := os.MkdirTemp(base, fmt.Sprintf("tapedeck-probe-%d-", os.Getuid()))
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := &mount.Overlay{
		Target: filepath.Join(dir, "target"), Lowers: []string{filepath.Join(dir, "target")},
		Upper: filepath.Join(dir, "layers", "upper"), Work: filepath.Join(dir, "layers", "work"),
	}
	for _, d := range []string{o.Target, o.Upper, o.Work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	_, err = tryJail(o)
	err = errors.Join(err, mount.MakeWhiteout(filepath.Join(dir, "whiteout")))
	return errors.Join(err, mount.EmptyLayers([]mount.Overlay{*o})) // the kernel leaves a directory in them that nobody but root may enter
}

func tryPTY() error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	return errors.Join(master.Close(), slave.Close())
}
