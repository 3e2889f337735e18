//go:build escape

package escape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// runLimit is how long one recording or replay may take.
const runLimit = 4 * time.Minute

// A finding is what came of a row in one run.
type finding struct {
	outcome
	user string
	mode mode
	row  *row
	good bool // as the table says
}

// A stage is one user's outside, and the commands run in it.
type stage struct {
	o        *outside
	user     string
	tapedeck string
	self     string // this executable, where everybody may run it
	found    []finding
}

// tryEverything records and replays every row as the user.
func tryEverything(uid int, tapedeck, only string, long bool) ([]finding, error) {
	user := userName(uid)
	o, err := newOutside(uid, only, long)
	if err != nil {
		return nil, fmt.Errorf("outside of %s: %w", user, err)
	}
	defer o.Close()
	st := &stage{o: o, user: user, tapedeck: tapedeck}
	if err := st.prepare(); err != nil {
		return nil, err
	}
	if len(rowsFor(false, only))+len(rowsFor(true, only)) == 0 {
		return nil, fmt.Errorf("no row has %q in its name", only)
	}
	plain, tty := filepath.Join(o.Work, "runs", "plain.rec"), filepath.Join(o.Work, "runs", "tty.rec")
	err = errors.Join(
		st.run(recording, false, plain, "record", "-o", plain, "--tty", "off", "--writable", o.Small, "--", st.self, "inside"),
		st.run(replaying, false, "", "replay", plain),
		st.isolated(filepath.Join(o.Work, "runs", "isolated.rec")),
		st.run(recording, true, tty, "record", "-o", tty, "--", st.self, "inside", "terminal"),
		st.run(replaying, true, "", "replay", tty))
	return st.found, err
}

// isolated records once more with layers over the disk, in the long form.
func (st *stage) isolated(rec string) error {
	if !st.o.Long {
		return nil
	}
	return st.run(isolating, false, rec, "record", "--isolated", "-o", rec, "--tty", "off", "--writable", st.o.Small, "--", st.self, "inside")
}

func (st *stage) prepare() error {
	o := st.o
	if os.Geteuid() == 0 {
		o.OtherProc = filepath.Join(o.Elsewhere, "proc")
		o.Below = filepath.Join(o.base, "below")
		if err := errors.Join(os.Mkdir(o.Below, 0o755), o.own(o.Below)); err != nil {
			return err
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	st.self = filepath.Join(o.base, "escape")
	return os.WriteFile(st.self, self, 0o755)
}

// run runs tapedeck with args and takes in what the program inside said.
func (st *stage) run(m mode, terminal bool, recording string, args ...string) error {
	o := st.o
	if len(rowsFor(terminal, o.Only)) == 0 {
		return nil
	}
	o.forget()
	o.Recording = recording
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, st.self, append([]string{"launch", fmt.Sprint(o.uid), st.tapedeck}, args...)...)
	cmd.Dir = o.Work
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + o.Home, "TMPDIR=" + o.Temp, "TERM=xterm",
		"XDG_CONFIG_HOME=" + filepath.Dir(o.Config), "XDG_RUNTIME_DIR=" + o.Runtime,
		"HTTP_PROXY=http://" + o.TCP["proxy"], "HTTPS_PROXY=http://" + o.TCP["proxy"], "https_proxy=http://" + o.TCP["proxy"],
		sceneVar + "=" + filepath.Join(o.base, "scene.json"),
	}
	cmd.WaitDelay = 5 * time.Second
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	} else {
		o.take(cmd)
	}
	out := &listener{stage: st, mode: m}
	if terminal {
		return st.runOnTerminal(cmd, out)
	}
	if err := st.runOnFiles(cmd, out); err != nil {
		return err
	}
	return st.judge(m, false, out, cmd.ProcessState.ExitCode(), recording)
}

// runOnFiles gives the recorder files that lie elsewhere as its stdin and stderr.
func (st *stage) runOnFiles(cmd *exec.Cmd, out *listener) error {
	if err := st.writeScene(); err != nil {
		return err
	}
	in, err := os.Open(filepath.Join(st.o.Elsewhere, "stdin"))
	if err != nil {
		return err
	}
	defer in.Close()
	log, err := os.OpenFile(filepath.Join(st.o.Elsewhere, "stderr"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdin, cmd.Stderr = in, log
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	scan(pipe, out.line)
	return exitOnly(cmd.Wait())
}

// runOnTerminal gives the recorder a terminal, and looks afterwards for keys that nobody typed there.
func (st *stage) runOnTerminal(cmd *exec.Cmd, out *listener) error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer master.Close()
	defer slave.Close()
	st.o.Terminal = slave.Name()
	if err := errors.Join(st.writeScene(), os.Chown(slave.Name(), st.o.uid, -1)); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		scan(master, func(line string) { out.line(strings.TrimRight(line, "\r")) })
	}()
	err = exitOnly(cmd.Wait())
	st.o.typed = waiting(slave)
	slave.Close() // the last end but the master's: it reads no more
	<-done
	if err != nil {
		return err
	}
	return st.judge(out.mode, true, out, cmd.ProcessState.ExitCode(), st.o.Recording)
}

// exitOnly leaves the exit status to who looks at it.
func exitOnly(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func (st *stage) writeScene() error {
	data, err := json.Marshal(&st.o.scene)
	if err != nil {
		return err
	}
	path := filepath.Join(st.o.base, "scene.json")
	return errors.Join(os.WriteFile(path, data, 0o644), st.o.own(path))
}

// A listener reads what the program inside prints.
type listener struct {
	stage    *stage
	mode     mode
	outcomes []outcome
	rest     []string
	err      error
}

func (l *listener) line(text string) {
	var o outcome
	if i := strings.Index(text, `{"row":`); i > 0 {
		text = text[i:] // on a terminal what was typed stands before it
	}
	switch {
	case text == laterLine:
		l.err = l.stage.o.listenLater()
	case json.Unmarshal([]byte(text), &o) == nil && o.Row != "":
		l.outcomes = append(l.outcomes, o)
	default:
		l.rest = append(l.rest, text)
	}
}

// judge holds what was seen inside and outside against the table.
func (st *stage) judge(m mode, terminal bool, l *listener, status int, recording string) error {
	log, err := os.ReadFile(filepath.Join(st.o.Elsewhere, "stderr"))
	if err = errors.Join(l.err, err); err != nil {
		return err
	}
	if len(l.outcomes) == 0 {
		return fmt.Errorf("%s, %v: nothing was tried, exit %d\n%s\n%s", st.user, m, status, strings.Join(l.rest, "\n"), log)
	}
	if m == replaying && status != 0 && status != 2 || m == replaying && status == 1 {
		return fmt.Errorf("%s, %v: exit %d\n%s\n%s", st.user, m, status, strings.Join(l.rest, "\n"), log)
	}
	if recording != "" {
		if err := st.verify(recording); err != nil {
			return fmt.Errorf("%s: %w\n%s", st.user, err, log)
		}
	}
	for _, r := range rowsFor(terminal, st.o.Only) {
		i := slices.IndexFunc(l.outcomes, func(o outcome) bool { return o.Row == r.name })
		if i < 0 {
			return fmt.Errorf("%s, %v: nothing was heard of %q\n%s", st.user, m, r.name, strings.Join(l.rest, "\n"))
		}
		st.found = append(st.found, st.judgeRow(m, r, l.outcomes[i]))
	}
	return nil
}

func (st *stage) judgeRow(m mode, r *row, o outcome) finding {
	if r.untouched != nil && o.State != stateNotTried {
		if err := r.untouched(st.o); err != nil {
			o.State, o.Detail = stateOut, err.Error()
		}
	}
	expected := stateHeld
	if r.out&m != 0 {
		expected = stateOut
	}
	return finding{outcome: o, user: st.user, mode: m, row: r, good: o.State == expected || o.State == stateNotTried}
}

// verify is nil where the recording is sound, whatever the program did while it was made.
func (st *stage) verify(recording string) error {
	cmd := exec.Command(st.tapedeck, "verify", recording)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Dir(st.o.Config)) // whose key sealed it
	st.o.take(cmd)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("verify %s: %w: %s", recording, err, said)
	}
	return nil
}

// build makes tapedeck from this checkout, where everybody may run it.
func build() (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("/var/tmp", "tapedeck-built-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, "tapedeck")
	cmd := exec.Command("go", "build", "-o", path, "github.com/tapedeck-dev/tapedeck/cmd/tapedeck")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := cmd.CombinedOutput()
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		remove()
		return "", nil, fmt.Errorf("building tapedeck: %w\n%s", err, said)
	}
	return path, remove, nil
}

// users are those to try everything as: the caller and, of root, one without privileges too.
func users() []int {
	if uid := os.Geteuid(); uid != 0 {
		return []int{uid}
	}
	return []int{0, nobody}
}

func userName(uid int) string {
	if uid == 0 {
		return "root"
	}
	return fmt.Sprint("uid ", uid)
}
