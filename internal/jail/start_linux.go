package jail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
	"github.com/tapedeck-dev/tapedeck/internal/jail/launch"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/stage"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
)

// Enter must be the first call of main, and of TestMain where a test starts a jail.
func Enter() { stage.Enter() }

const maxPorts = 200 // their sockets travel in one packet

// Start makes a jail for the program of c and returns once everything but the program itself is known to work: Release
// starts it. The jail ends when ctx does. The error is an *UnavailableError where this system cannot make a jail, a
// *step.Error where a path of c cannot be mounted, an *ExecError where its Dir cannot be entered.
func Start(ctx context.Context, c *Config) (*Jail, error) {
	if !stage.Entered.Load() {
		return nil, ErrNotEntered
	}
	if !filter.Known() {
		return nil, errProcessor
	}
	if err := errors.Join(c.check(), ctx.Err()); err != nil {
		return nil, err
	}
	plan, err := mount.NewPlan(c.wish())
	if err != nil {
		return nil, err
	}
	return startPlanned(ctx, c, plan)
}

// terminalOf returns the path of the program's terminal, so that the program finds its name inside.
func terminalOf(c *Config) string {
	if c.TTY < 0 {
		return ""
	}
	f := []*os.File{c.Stdin, c.Stdout, c.Stderr}[c.TTY]
	if f == nil {
		return ""
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || !strings.HasPrefix(path, "/dev/pts/") {
		return ""
	}
	return path
}

// wish is what the mounts of the jail are planned by.
func (c *Config) wish() *mount.Wish {
	return &mount.Wish{Writable: c.Writable, Overlays: c.Overlays, Masks: c.Masks, Files: c.Files, Console: terminalOf(c)}
}

// maxStarts is how often a start is tried: something may be mounted, or unmounted, below an overlay meanwhile.
const maxStarts = 3

// startPlanned starts a jail by a plan, and by newer ones where that fails.
func startPlanned(ctx context.Context, c *Config, plan *mount.Plan) (*Jail, error) {
	filled := mount.HasFilledLayer(c.Overlays) // nobody could tell what a start that failed left there
	for range maxStarts - 1 {
		j, err := startOnce(ctx, c, plan)
		var setup *step.Error
		if filled || !errors.As(err, &setup) || ctx.Err() != nil {
			return j, err
		}
		newer, errPlan := mount.NewPlan(c.wish())
		if errPlan != nil || mount.EmptyLayers(c.Overlays) != nil {
			return nil, err
		}
		plan = newer
	}
	return startOnce(ctx, c, plan)
}

func startOnce(ctx context.Context, c *Config, plan *mount.Plan) (*Jail, error) {
	if err := plan.MakeLayers(); err != nil {
		return nil, err
	}
	j, err := begin(c, plan)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { j.init.Kill() }) // of what await makes it must read nothing
	err = j.await()
	if stop() && err == nil {
		j.stopContext = context.AfterFunc(ctx, j.kill)
		return j, nil
	}
	j.Close() // what the init said last is there then
	if err != nil {
		err = j.explain(err)
	}
	return nil, errors.Join(err, ctx.Err())
}

func (c *Config) check() error {
	if len(c.Argv) == 0 || !filepath.IsAbs(c.Path) || !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("jail: Path %q and Dir %q must be absolute, Argv not empty", c.Path, c.Dir)
	}
	if c.TTY < -1 || c.TTY > 2 {
		return fmt.Errorf("jail: TTY is %d, not -1, 0, 1 or 2", c.TTY)
	}
	if len(c.Ports) > maxPorts {
		return fmt.Errorf("jail: %d ports, at most %d", len(c.Ports), maxPorts)
	}
	for _, f := range c.Files {
		if !strings.HasPrefix(filepath.Clean(f.Path), "/run/") {
			return fmt.Errorf("jail: file %s is not under /run", f.Path)
		}
	}
	return nil
}

// begin starts the init and hands everything to a Jail.
func begin(c *Config, plan *mount.Plan) (*Jail, error) {
	j := c.Prepared.take()
	if j == nil {
		var err error
		if j, err = startInit(launch.Take()); err != nil {
			return nil, err
		}
	}
	j.log = logger(c.Log)
	began := c.Began
	if began.IsZero() {
		began = time.Now()
	}
	j.wanted = wanted{began: began, files: c.Watch, plan: plan, spawns: c.Spawns, streams: []*os.File{c.Stdin, c.Stdout, c.Stderr}, inputs: c.Inputs}
	if err := j.send(c, plan); err != nil {
		err = cmp.Or(j.awaitBegun(), err) // it may have ended already, and said why
		j.Close()
		return nil, j.explain(err)
	}
	return j, nil
}

// startInit makes a Jail of an init that was started, with the goroutines that wait for it: kill ends it, Close waits for it.
func startInit(i *launch.Init, err error) (*Jail, error) {
	if err != nil {
		return nil, diagnoseStart(err)
	}
	j := newJail()
	j.init = i
	j.tasks.Go(i.Wait)
	j.tasks.Go(func() {
		defer i.Stderr.Close()
		io.Copy(&j.stderr, i.Stderr)
	})
	if j.ctl, err = stage.ControlOf(i.Control); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// send tells the init what the jail is to be.
func (j *Jail) send(c *Config, plan *mount.Plan) error {
	var files handedOver
	defer files.close()
	alone := plan.OpenAlone() // before the plan is written, which says which there are
	size := 16 << 10
	for _, f := range plan.Files {
		size += len(f.Data)
	}
	files.memfile("init", &stage.InitSpec{Hostname: c.Hostname, Umask: c.Umask, Ports: portsOf(c), TTY: c.TTY, Background: c.Background, Notified: c.notified(), Mounts: *plan}, size)
	program := &stage.ExecSpec{Path: c.Path, Dir: c.Dir, Argv: c.Argv, Env: c.Env, Ignored: stage.IgnoredAtStart}
	j.exec = files.control(program)
	files.memfile("exec", program, 16<<10)
	for _, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		files.stream(f)
	}
	files.add(stage.OpenLastPID())
	files.fds = append(files.fds, plan.Behind()...)
	for _, f := range alone {
		files.add(f, nil)
	}
	if files.err != nil {
		return files.err
	}
	return j.ctl.Send(&stage.Message{Kind: stage.MsgPlan}, files.fds...)
}

// notified are the calls that what j.prepare makes answers.
func (c *Config) notified() stage.Notified {
	return stage.Notified{
		Files: c.Watch != nil, Spawns: c.Spawns != nil || c.Inputs != nil, Inputs: c.Inputs != nil, Ticks: inputs.Hides(), Shifted: c.Shifted,
	}
}

func portsOf(c *Config) []uint16 {
	ports := []uint16{80, 443}
	for _, p := range c.Ports {
		if p != 80 && p != 443 {
			ports = append(ports, p)
		}
	}
	return ports
}

// handedOver are the files that the init gets with its plan; the first error stops the rest.
type handedOver struct {
	fds []int
	own []*os.File // closed in the recorder once they are sent
	err error
}

func (h *handedOver) add(f *os.File, err error) {
	if err != nil {
		h.err = errors.Join(h.err, err)
		return
	}
	h.fds, h.own = append(h.fds, int(f.Fd())), append(h.own, f)
}

func (h *handedOver) control(program *stage.ExecSpec) *stage.Exec {
	ours, theirs, err := stage.NewExec(program)
	h.add(theirs, err)
	return ours
}

func (h *handedOver) memfile(name string, spec any, size int) { h.add(stage.Memfile(name, spec, size)) }

func (h *handedOver) stream(f *os.File) {
	if f == nil {
		h.add(os.OpenFile(os.DevNull, os.O_RDWR, 0))
		return
	}
	h.fds = append(h.fds, int(f.Fd()))
}

func (h *handedOver) close() {
	for _, f := range h.own {
		f.Close()
	}
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// A Prepared is the init of a jail that nobody has described yet: a Start whose Config has it goes on with it. Close it always.
type Prepared struct {
	mu   sync.Mutex
	j    *Jail // nil once it was taken
	left *Jail // closed, and nobody waited for its init yet; nil for none
}

// Prepare starts one, unless one was started ahead, and does not wait for it. The error is an *UnavailableError or ErrNotEntered.
func Prepare() (*Prepared, error) {
	if !stage.Entered.Load() {
		return nil, ErrNotEntered
	}
	if !filter.Known() {
		return nil, errProcessor
	}
	j, err := startInit(launch.Take())
	if err != nil {
		return nil, err
	}
	p := &Prepared{j: j}
	j.prepared = p
	return p, nil
}

// NotNeeded ends the init that was started ahead, if nobody prepared anything with it.
func NotNeeded() { launch.Drop() }

// Check waits until it is known whether namespaces and a fresh /proc can be had: what most often cannot. The error is an
// *UnavailableError then. Start may still find that something else is missing.
func (p *Prepared) Check() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.j == nil || p.j.begun {
		return nil
	}
	if err := p.j.awaitBegun(); err != nil {
		return p.j.explain(err)
	}
	return nil
}

// take hands the init out, once.
func (p *Prepared) take() *Jail {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.j
	p.j = nil
	return j
}

// leave has Close wait for the init of j, which was made from p. A nil p waits for none.
func (p *Prepared) leave(j *Jail) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = j
	return true
}

// Close ends the init unless a Start has it, and returns when it, or the one of the jail that was made from it and closed, is gone.
func (p *Prepared) Close() error {
	if j := p.take(); j != nil {
		return j.Close()
	}
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left != nil {
		p.left.gone()
	}
	return nil
}

// Available tells, by trying it once a process, what Prepare and Check find.
func Available() error {
	if !stage.Entered.Load() {
		return ErrNotEntered
	}
	return available()
}

var available = sync.OnceValue(func() error {
	p, err := Prepare()
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Check()
})
