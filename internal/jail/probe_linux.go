package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/creack/pty"
	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
)

// Probe tries each part of the jail for real and says what works. It makes and removes a directory in /var/tmp.
func Probe() []Check {
	if err := Available(); err != nil {
		return []Check{{Name: "namespaces", Detail: err.Error(), Cost: "nothing can be recorded or replayed in a jail"}}
	}
	checks := []Check{{Name: "namespaces", OK: true, Detail: "user, network, mount, PID, UTS and IPC, with a fresh /proc"}}
	j, err := tryJail(nil)
	checks = append(checks, Check{Name: "confinement", OK: err == nil,
		Detail: detailOf(err, "mounts, network, capabilities and system call filter stand, notifications are answered"),
		Cost:   costOf(err, "nothing can be recorded or replayed in a jail")})
	if err != nil {
		return checks
	}
	checks = append(checks, probeWatch(j), probeSpawns(j))
	notCovered := slices.DeleteFunc(slices.Clone(j.NotCovered()), func(s string) bool {
		return j.blind != nil && s == changes.NotWatched(j.blind) || j.deaf != nil && slices.Contains(noSpawns(j.deaf), s)
	})
	checks = append(checks, Check{Name: "evidence", OK: len(notCovered) == 0, Evidence: true,
		Detail: detailOf(notCoveredError(notCovered), "refused ports are seen, the number of processes is limited"),
		Cost:   costOf(notCoveredError(notCovered), "recordings list it as not covered")})
	return append(checks, probeOverlay(), probePTY())
}

func probeWatch(j *Jail) Check {
	return Check{Name: "files", OK: j.blind == nil, Evidence: true,
		Detail: detailOf(j.blind, "calls that change files are seen before they do"),
		Cost:   costOf(j.blind, "recordings have the work tree before and after, but neither the order of changes nor what stood in other files")}
}

func probeSpawns(j *Jail) Check {
	return Check{Name: "spawns", OK: j.deaf == nil, Evidence: true,
		Detail: detailOf(j.deaf, "programs that a program talks with are seen, and can be answered for"),
		Cost:   costOf(j.deaf, "MCP servers over stdio are not recorded, and run on a replay")}
}

func notCoveredError(list []string) error {
	if len(list) == 0 {
		return nil
	}
	return errors.New(strings.Join(list, "; "))
}

func detailOf(err error, fine string) string {
	if err != nil {
		return err.Error()
	}
	return fine
}

func costOf(err error, cost string) string {
	if err != nil {
		return cost
	}
	return ""
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

func probeOverlay() Check {
	err := tryOverlay("/var/tmp")
	return Check{Name: "overlay", OK: err == nil,
		Detail: detailOf(err, "overlayfs with userxattr, layers in /var/tmp"),
		Cost:   costOf(err, "replay and --isolated need a full copy of the work tree, HOME and TMP")}
}

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
	return errors.Join(err, mount.MakeWhiteout(filepath.Join(dir, "whiteout")))
}

func probePTY() Check {
	master, slave, err := pty.Open()
	if err == nil {
		master.Close()
		slave.Close()
	}
	return Check{Name: "terminal", OK: err == nil, Evidence: true, Detail: detailOf(err, "a PTY can be opened"),
		Cost: costOf(err, "programs run without a terminal")}
}
