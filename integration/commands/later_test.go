//go:build commands && linux && amd64

package commands

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/vdso"
)

// today is an agent whose prompt names the day.
const today = `import datetime, json, urllib.request
system = f"Today is {datetime.date.today():%A, %d %B %Y}."
body = json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": "run: date"}, {"role": "system", "content": system}]}).encode()
asked = urllib.request.Request("https://api.openai.com/v1/chat/completions", body, {"Content-Type": "application/json", "Authorization": "Bearer sk-dummy"})
print(json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"], system)
`

// TestADayLater replays an agent whose prompt names the day when that is over, and with another day in its source.
func TestADayLater(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		b.WriteFile(filepath.Join(b.Work, "today.py"), today)
		res := recordProgram(t, b, "today.py")
		out, status := aDayLater(t, b.Command("record", "-o", filepath.Join(b.Home, "later.rec"), "--", "date", "-u", "+%F"))
		if want := time.Now().Add(day).UTC().Format(time.DateOnly); status != 0 || !strings.HasPrefix(out, want) {
			t.Fatalf("status %d: a day later it is %q, want %s", status, out, want)
		}
		if out, status := aDayLater(t, b.Command("replay", b.Recording())); status != 0 || !strings.HasSuffix(strings.TrimSpace(out), strings.TrimSpace(res.Stdout)) {
			t.Errorf("a day later: status %d\n%s\nrecorded: %s", status, out, res.Stdout)
		}
		b.WriteFile(filepath.Join(b.Work, "today.py"), strings.Replace(today, "datetime.date.today()", "datetime.date(2031, 5, 6)", 1))
		res = b.Tapedeck("replay", "--tree", "now", b.Recording())
		if res.Status != 2 || !strings.Contains(res.Stderr, "2031") {
			t.Errorf("another day in the source: %v", res)
		}
	})
}

// TestElsewhere replays with other settings outside.
func TestElsewhere(t *testing.T) {
	const command = `date; date +%s%N; env; pwd; locale; echo ~; python3 -c 'import time, os; print(time.localtime(), os.getcwd(), os.path.expanduser("~"))'`
	run.Each(t, func(t *testing.T, b *run.Box) {
		record(t, b, command)
		for name, change := range map[string]func(*exec.Cmd){
			"TZ, LANG": func(c *exec.Cmd) {
				c.Env = append(c.Env, "TZ=Pacific/Kiritimati", "LANG=de_DE.UTF-8", "LC_ALL=C.UTF-8")
			},
			"directory": func(c *exec.Cmd) { c.Dir = "/" },
			"HOME":      func(c *exec.Cmd) { c.Env = append(c.Env, "HOME="+b.Work) },
			"faketime":  underFaketime,
		} {
			cmd := b.Command("replay", b.Recording())
			change(cmd)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	})
}

// underFaketime has libfaketime preloaded, where it is installed.
func underFaketime(c *exec.Cmd) {
	if path, err := exec.LookPath("faketime"); err == nil {
		c.Path, c.Args = path, append([]string{"faketime", "-f", "+400d x3", c.Path}, c.Args[1:]...)
	}
}

const day = 24 * time.Hour

// aDayLater runs a program whose wall time is a day ahead, as that of what it starts is not, and tells what it printed.
func aDayLater(t *testing.T, cmd *exec.Cmd) (stdout string, status int) {
	t.Helper()
	image, err := vdso.Image()
	if err != nil {
		t.Skip(err)
	}
	patch, err := vdso.New(image, ahead)
	if err != nil {
		t.Skip(err)
	}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Ptrace = true
	runtime.LockOSThread() // the kernel knows a tracer by its thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil { // at its execve
		t.Fatal(err)
	}
	if err := putAhead(patch, pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.PtraceDetach(pid); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the status tells
	if cmd.ProcessState.ExitCode() != 0 {
		t.Log(errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func putAhead(patch *vdso.Patch, pid int) error {
	aux, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	for ; len(aux) >= 16; aux = aux[16:] {
		if binary.NativeEndian.Uint64(aux) == 33 { // AT_SYSINFO_EHDR
			return patch.Put(mem, binary.NativeEndian.Uint64(aux[8:]))
		}
	}
	return vdso.ErrUnknown
}

// ahead adds a day to CLOCK_REALTIME.
func ahead(name string, was, at uint64) []byte {
	if name != "clock_gettime" {
		return nil
	}
	code := []byte{
		0x85, 0xff, // test edi, edi
		0x75, 0x0f, // jne other
		0x56, // push rsi
		0xe8} // call was
	code = binary.LittleEndian.AppendUint32(code, uint32(was-(at+uint64(len(code))+4)))
	code = append(code, 0x5e, // pop rsi
		0x48, 0x81, 0x06) // add qword [rsi], …
	code = binary.LittleEndian.AppendUint32(code, uint32(day/time.Second))
	code = append(code, 0xc3, // ret
		0xe9) // other: jmp was
	return binary.LittleEndian.AppendUint32(code, uint32(was-(at+uint64(len(code))+4)))
}
