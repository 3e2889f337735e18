package deck_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
	"golang.org/x/sys/unix"
)

func init() { programs["oddities"] = playOddities }

// An oddity changes files below HOME in a way that one call does not tell; ask is a question to a model.
type oddity func(home string, ask func()) error

var oddities = map[string]oddity{
	"mapped": func(home string, ask func()) error { // no call says when a mapping is written to
		f, err := os.OpenFile(filepath.Join(home, "mapped"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		f.Close()
		copy(m, "first ")
		ask()
		copy(m, "second")
		ask()
		return unix.Munmap(m)
	},
	"inherited": func(home string, ask func()) error { // who writes never opened it
		f, err := os.Create(filepath.Join(home, "inherited"))
		if err != nil {
			return err
		}
		cmd := exec.Command("/bin/sh", "-c", "echo first >&3; echo ready; read go; echo second >&3")
		cmd.ExtraFiles = []*os.File{f}
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			return err
		}
		f.Close()
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			return err
		}
		ask()
		io.WriteString(in, "go\n")
		return cmd.Wait()
	},
	"unnamed": func(home string, ask func()) error { // a file that gets its name when it is whole
		fd, err := unix.Open(home, unix.O_TMPFILE|unix.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if _, err := unix.Write(fd, []byte("named late\n")); err != nil {
			return err
		}
		ask()
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		return unix.Linkat(unix.AT_FDCWD, path, unix.AT_FDCWD, filepath.Join(home, "unnamed"), unix.AT_SYMLINK_FOLLOW)
	},
	"sparse": func(home string, _ func()) error {
		f, err := os.Create(filepath.Join(home, "sparse"))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt([]byte("end"), 2<<30)
		return err
	},
	"fifo": func(home string, _ func()) error { return unix.Mkfifo(filepath.Join(home, "fifo"), 0o644) },
	"doomed": func(home string, ask func()) error { // what is written after a file has gone is in no tree
		f, err := os.OpenFile(filepath.Join(home, "doomed"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
		ask()
		_, err = f.WriteString("never seen")
		return err
	},
	"linked": func(home string, ask func()) error { // one write, two names
		if err := os.Link(filepath.Join(home, "one"), filepath.Join(home, "two")); err != nil {
			return err
		}
		ask()
		f, err := os.OpenFile(filepath.Join(home, "two"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("more\n")
		return err
	},
	"exchanged": func(home string, _ func()) error {
		return unix.Renameat2(unix.AT_FDCWD, filepath.Join(home, "one"), unix.AT_FDCWD, filepath.Join(home, "dir"), unix.RENAME_EXCHANGE)
	},
}

func playOddities(args []string) int {
	n := 0
	ask := func() {
		n++
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"question %d"}]}`, n)
		res, err := http.Post(args[1]+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if err := oddities[args[0]](os.Getenv("HOME"), ask); err != nil {
		return fail(err)
	}
	return 0
}

// TestOddities: what no single call tells of is seen all the same, a replay starts from what was there, and what is not kept
// is listed.
func TestOddities(t *testing.T) {
	t.Parallel()
	page := func(text string) string { return text + strings.Repeat(".", 4096-len(text)) }
	for name, tt := range map[string]struct {
		found map[string]string // below HOME
		want  []string          // on the tape
		gap   string            // what the ledger lists
	}{
		"mapped": {
			map[string]string{"mapped": page("")},
			[]string{"~/mapped: ...... -> first ", "ask", "~/mapped: first  -> second", "ask"}, "",
		},
		"inherited": {nil, []string{"~/inherited: nothing -> first", "ask", "~/inherited: first -> first\nsecond"}, ""},
		"unnamed":   {nil, []string{"ask", "~/unnamed: nothing -> named late"}, ""},
		"sparse":    {nil, nil, "~/sparse (too_large)"},
		"fifo":      {nil, []string{"~/fifo: nothing -> "}, ""},
		"doomed":    {map[string]string{"doomed": "d\n"}, []string{"~/doomed: d -> gone", "ask"}, ""},
		"linked": {
			map[string]string{"one": "1\n"},
			[]string{"~/two: nothing -> 1", "ask", "~/one: 1 -> 1\nmore", "~/two: 1 -> 1\nmore"}, "",
		},
		"exchanged": {
			map[string]string{"one": "1\n", "dir/in": "2\n"},
			[]string{"~/dir: nothing -> 1", "~/dir/in: 2 -> gone", "~/one: 1 -> ", "~/one/in: nothing -> 2"}, "",
		},
	} {
		if rare(name, "doomed", "fifo", "sparse", "unnamed") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.upstream("api.openai.com", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"choices":[]}`) })
			for path, text := range tt.found {
				put(t, filepath.Join(b.home, path), text)
			}
			res, out := b.record("oddities", name, "https://api.openai.com")
			if res.Exit.Code != 0 {
				t.Fatal(out)
			}
			if got := inOrder(t, kinds(t, res.Recording)); !slices.Equal(got, tt.want) {
				t.Errorf("on the tape stands %q, want %q", got, tt.want)
			}
			if gaps := res.Recording.Manifest.NotCovered(); tt.gap != "" && !slices.Contains(gaps, tt.gap) {
				t.Errorf("not covered are %q, want %q among them", gaps, tt.gap)
			}
			v, out := b.replay(res.Recording, nil)
			b.green(v)
			if v.Exit.Code != 0 {
				t.Errorf("replay: %s", out)
			}
		})
	}
}

// inOrder lists questions and changed files in the order of a tape, files by their first bytes.
func inOrder(t *testing.T, all []tape.Kind) (out []string) {
	t.Helper()
	start := func(p *tape.Payload) string {
		if p == nil {
			return "nothing"
		}
		b, _, long := bytes.Cut([]byte(p.Text), []byte("..."))
		if len(b) == 0 && long {
			return "......"
		}
		return strings.TrimSuffix(string(b), "\n")
	}
	for _, k := range all {
		switch k := k.(type) {
		case *tape.LLMCall:
			out = append(out, "ask")
		case *tape.FileWrite:
			out = append(out, fmt.Sprintf("%s: %s -> %s", k.Path, start(k.Before), start(k.Content)))
		case *tape.FileDelete:
			out = append(out, fmt.Sprintf("%s: %s -> gone", k.Path, start(k.Before)))
		}
	}
	return out
}
