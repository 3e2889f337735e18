//go:build escape

package escape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// sceneVar names the file that tells the inside what there is to be reached.
const sceneVar = "ESCAPE_SCENE"

// tryLimit is how long one try may take.
const tryLimit = 30 * time.Second

// laterLine, on its own, asks the outside for what is made after the start.
const laterLine = "later, please"

// An inside is what a try knows.
type inside struct {
	scene
	name string
}

func newInside(name string) (*inside, error) {
	data, err := os.ReadFile(os.Getenv(sceneVar))
	if err != nil {
		return nil, err
	}
	in := &inside{name: name}
	return in, json.Unmarshal(data, &in.scene)
}

// runInside tries every row, each in a process of its own, and prints an outcome a line.
func runInside(terminal bool) error {
	in, err := newInside("")
	if err != nil {
		return err
	}
	if err := os.Setenv(inheritedVar, joined(inheritedFiles())); err != nil {
		return err
	}
	if !terminal {
		fmt.Println(laterLine)
	}
	for _, r := range rowsFor(terminal, in.Only) {
		o := in.tryRow(r)
		o.Row = r.name
		line, err := json.Marshal(o)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

// tryRow starts the row's process and reads its outcome.
func (in *inside) tryRow(r *row) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), tryLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "try", r.name)
	cmd.Stdin = os.Stdin
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = spaces(r.spaces)
	err := cmd.Run()
	if ctx.Err() != nil {
		return out("did not end within %v: %s", tryLimit, said.String())
	}
	if r.spaces != 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC)) {
		return held("no such namespace: %v", errnoName(err))
	}
	var o outcome
	text := strings.TrimSpace(said.String())
	if errJSON := json.Unmarshal([]byte(text[strings.LastIndex(text, "\n")+1:]), &o); err != nil || errJSON != nil {
		return out("the try ended otherwise than planned: %v: %s", err, text)
	}
	return o
}

// spaces gives a process namespaces of its own, and in them every capability. Its user is root there, but for a uid 0: that
// one has no capability to map an id, and so makes no file (EOVERFLOW).
func spaces(flags uintptr) *syscall.SysProcAttr {
	if flags == 0 {
		return nil
	}
	attr := &syscall.SysProcAttr{Cloneflags: flags | syscall.CLONE_NEWUSER}
	if uid := os.Getuid(); uid != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	for c := range uintptr(41) {
		attr.AmbientCaps = append(attr.AmbientCaps, c)
	}
	return attr
}

// runTry is the process of one row.
func runTry(name string) error {
	r := findRow(name)
	if r == nil {
		return fmt.Errorf("no row %q", name)
	}
	in, err := newInside(name)
	if err != nil {
		return err
	}
	line, err := json.Marshal(r.try(in))
	if err == nil {
		_, err = fmt.Println(string(line))
	}
	return err
}

// stunt runs another process of ours inside, by name, and returns what it printed.
func stunt(name string, args ...string) (string, error) {
	return stuntFrom("/proc/self/exe", name, args...)
}

func stuntFrom(path, name string, args ...string) (string, error) {
	cmd := exec.Command(path, append([]string{"stunt", name}, args...)...)
	data, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(data)), err
}

// stunts are the processes of ours that tries start beside themselves.
var stunts map[string]func(args []string) error

func init() {
	stunts = map[string]func(args []string) error{
		"int80":  func([]string) error { return int80() },
		"whoami": func([]string) error { return whoami() },
		"daemon": daemon,
	}
}

func runStunt(args []string) error {
	if len(args) == 0 || stunts[args[0]] == nil {
		return fmt.Errorf("no stunt %q", args)
	}
	return stunts[args[0]](args[1:])
}
