// Command prog is what the tests run as a module: its first argument says what it does.
package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench/wasi/guest"
)

func main() {
	does := map[string]func(args []string) error{
		"all": all, "agent": agent, "exit": exit, "spin": spin, "watch": watch, "ask": ask, "grow": grow, "shout": shout, "files": files, "paths": paths,
		"stdin": stdin, "calls": calls, "denied": denied, "deep": func([]string) error { return deep(0) }, "panic": func([]string) error { panic("no") },
		"nothing": func([]string) error { return nil }, "open": open, "wrong": wrong, "sleep": sleep,
	}
	if len(os.Args) < 2 || does[os.Args[1]] == nil {
		fmt.Println("what?")
		os.Exit(64)
	}
	if err := does[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// all asks for everything that a language gives: the order of a map, of goroutines, of the clock.
func all([]string) error {
	fmt.Println(os.Args[0], os.Environ(), time.Now().UTC().Format(time.RFC3339Nano))
	m := map[int]int{}
	for i := range 100 {
		m[i] = i
	}
	for k := range m {
		fmt.Print(k, " ")
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	fmt.Printf("%x\n", b)
	var mu sync.Mutex
	var wait sync.WaitGroup
	var order []int
	for i := range 64 {
		wait.Go(func() {
			time.Sleep(time.Duration(i*7%13) * 700 * time.Microsecond)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
			select { // which of them is ready is for the runtime's random numbers
			case <-time.After(time.Millisecond):
			case <-time.After(time.Millisecond):
			}
		})
	}
	wait.Wait()
	fmt.Println(order)
	began := time.Now()
	time.Sleep(25 * time.Hour)
	fmt.Println(time.Since(began))
	return os.WriteFile("order.txt", fmt.Append(nil, order), 0o644)
}

// agent asks a model until it has no more to do.
func agent([]string) error {
	messages := []guest.Message{{Role: "user", Content: "What changed?"}}
	for range 5 {
		answer, err := guest.Complete(&guest.Request{Messages: messages, System: "Be brief.", Model: "some-model"})
		if err != nil {
			return err
		}
		if len(answer.ToolCalls) == 0 {
			fmt.Println(answer.Text, answer.Usage.OutputTokens)
			break
		}
		result, err := guest.Run(&guest.Command{Program: "git", Args: []string{"status", "--short"}})
		if err != nil {
			return err
		}
		messages = append(messages, guest.Message{Role: "assistant", Content: answer.Text},
			guest.Message{Role: "user", Content: string(result.Stdout)})
	}
	time.Sleep(24 * time.Hour)
	if err := os.WriteFile("report.md", []byte("# Done\n"), 0o644); err != nil {
		return err
	}
	patch, err := guest.Diff()
	fmt.Print(patch)
	return err
}

func exit(args []string) error {
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

func spin([]string) error {
	for {
	}
}

// watch waits for the time in a loop.
func watch([]string) error {
	for began := time.Now(); time.Since(began) < time.Second; {
	}
	return nil
}

func grow([]string) error {
	var all [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		all = append(all, b)
	}
}

func shout([]string) error {
	line := []byte(strings.Repeat("x", 1<<16))
	for {
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
}

func deep(n int) error {
	var room [1 << 10]byte
	if n > 1<<30 {
		return nil
	}
	err := deep(n + 1)
	room[n%len(room)] = 1
	return errors.Join(err, fmt.Errorf("%d", room[0]))
}

// files does with files what programs do.
func files([]string) error {
	if err := os.MkdirAll("a/b", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("a/b/one.txt", []byte("one\n"), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile("a/b/one.txt", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	fmt.Fprint(f, "two\n")
	fmt.Fprint(f, "three\n")
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename("a/b/one.txt", "a/moved.txt"); err != nil {
		return err
	}
	b, err := os.ReadFile("/a/moved.txt")
	if err != nil {
		return err
	}
	fmt.Printf("%q\n", b)
	if err := seek(); err != nil {
		return err
	}
	if err := os.Symlink("moved.txt", "a/link"); err != nil {
		return err
	}
	target, err := os.Readlink("a/link")
	fmt.Println(target, err)
	err = fs.WalkDir(os.DirFS("/"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			fmt.Println(path, d.IsDir(), d.Type())
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println(os.Remove("a"), os.Remove("a/b"), os.Remove("a/moved.txt"), os.Remove("none"))
	return os.RemoveAll("a")
}

// seek reads and writes in the middle of a file.
func seek() error {
	f, err := os.Create("a/seek.bin")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte("0123456789")); err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("xy"), 3); err != nil {
		return err
	}
	end, err := f.Seek(-4, io.SeekEnd)
	if err != nil {
		return err
	}
	rest, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if err := f.Truncate(5); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Println(end, string(rest), info.Size(), info.ModTime().UTC())
	return nil
}

// paths tries to get out, and prints what it reads.
func paths(args []string) error {
	for _, name := range args {
		name = strings.ReplaceAll(name, "NUL", "\x00") // which no argument holds
		b, err := os.ReadFile(name)
		fmt.Printf("%.40q: %q %v\n", name, b, err != nil)
		if err := os.Symlink(name, "mine"); err == nil {
			b, err := os.ReadFile("mine")
			fmt.Printf("%.40q through a link: %q %v\n", name, b, err != nil)
			_ = os.Remove("mine")
		}
		_ = os.WriteFile(name, []byte("was here"), 0o644)
		_ = os.Rename(name, "moved")
		_ = os.MkdirAll(name, 0o755)
		_ = os.RemoveAll(name)
	}
	return nil
}

func stdin([]string) error {
	b, err := io.ReadAll(os.Stdin)
	fmt.Println(len(b), strings.ToUpper(string(b[:min(len(b), 20)])))
	return err
}

// calls calls every function of the host.
func calls([]string) error {
	n, err := guest.RandomInt(1, 6)
	fmt.Println(n, err)
	for _, c := range []struct {
		name      string
		arguments any
	}{
		{"clock.now_ms", nil}, {"clock.monotonic_ms", nil}, {"clock.sleep", map[string]int{"ms": 1500}}, {"clock.monotonic_ms", nil},
		{"fs.write", map[string]string{"path": "d/x.txt", "data": "hello\n"}}, {"fs.read", map[string]string{"path": "d/x.txt"}},
		{"fs.write", map[string]any{"path": "raw", "data": guest.Bytes{0xff, 0}}}, {"fs.read", map[string]string{"path": "raw"}},
		{"fs.list", map[string]string{"path": "."}}, {"fs.exists", map[string]string{"path": "d"}}, {"fs.delete", map[string]string{"path": "raw"}},
		{"fs.diff", nil}, {"random.bytes", map[string]int{"n": 4}}, {"env.get", map[string]string{"name": "MODE"}},
		{"env.get", map[string]string{"name": "NONE", "default": "x"}}, {"env.get", map[string]string{"name": "NONE"}},
		{"clock.advance", map[string]int{"ms": 10}}, {"log", map[string]any{"values": []any{"a", 1, nil, map[string]int{"b": 2}}}},
	} {
		var answer any
		err := guest.Call(c.name, c.arguments, &answer)
		fmt.Println(c.name, answer, err)
	}
	return guest.Log("the", "end")
}

// denied calls what nothing answers.
func denied([]string) error {
	_, err := guest.CallTool("search", "query", map[string]string{"q": "tape"})
	fmt.Println("mcp.call", err)
	_, err = guest.Get("https://example.com/", map[string]string{"accept": "text/html"})
	fmt.Println("http.get", err)
	_, err = guest.Post("https://example.com/", []byte("body"), nil)
	fmt.Println("http.post", err)
	_, err = guest.Complete(&guest.Request{Messages: []guest.Message{{Role: "user", Content: "hi"}}})
	fmt.Println("llm.complete", err)
	_, err = guest.Run(&guest.Command{Program: "git"})
	fmt.Println("process.run", err)
	return nil
}

// wrong calls the host with what it does not take.
func wrong([]string) error {
	for _, c := range []struct {
		name      string
		arguments any
	}{
		{"clock.sleep", nil}, {"clock.sleep", map[string]int{"ms": -1}}, {"clock.sleep", map[string]string{"ms": "1"}},
		{"clock.sleep", map[string]float64{"ms": 1e300}}, {"clock.sleep", map[string]int{"ms": 1, "s": 2}}, {"clock.sleep", []int{1}},
		{"fs.read", map[string]string{"path": "../x"}}, {"fs.read", map[string]string{"path": "/etc/passwd"}},
		{"fs.read", map[string]string{"path": "a\x00b"}}, {"random.bytes", map[string]int{"n": 1 << 40}},
		{"random.int", map[string]int{"low": 2, "high": 1}}, {"process.run", map[string]any{"program": "x", "args": []int{1}}},
		{"llm.complete", map[string]string{"messages": "hi"}}, {"http.get", map[string]any{"url": "a", "headers": 3}},
		{"http.get", map[string]any{"url": "://"}}, {"log", map[string]any{"value": 1}}, {"no.such", nil},
	} {
		fmt.Println(c.name, guest.Call(c.name, c.arguments, nil))
	}
	return nil
}

// open opens files and closes none.
func open(args []string) error {
	if err := os.WriteFile("x", []byte("x"), 0o644); err != nil {
		return err
	}
	var all []*os.File
	for {
		f, err := os.Open("x")
		if err != nil {
			fmt.Println(len(all) > 900, err)
			return nil
		}
		all = append(slices.Grow(all, 1), f)
	}
}

func sleep(args []string) error {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

// ask waits for the time to come as watch does, by the host's function.
func ask([]string) error {
	for now := int64(0); now < 1<<60; {
		if err := guest.Call("clock.now_ms", struct{}{}, &now); err != nil {
			return err
		}
	}
	return nil
}
