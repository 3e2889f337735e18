package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/vt/conform"
)

func main() {
	node := flag.String("node", "", "the folder with node_modules")
	samples := flag.String("samples", conform.Dir, "the folder of the shared samples")
	short := flag.Bool("short", false, "measure once")
	flag.Parse()
	if err := inFolder(&bench{node: *node, samples: *samples, runs: 5}, *short); err != nil {
		fmt.Fprintln(os.Stderr, "screen:", err)
		os.Exit(1)
	}
}

func inFolder(b *bench, short bool) error {
	dir, err := os.MkdirTemp("", "tapedeck-screen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	return run(b, short)
}

// A bench is what all comparisons need.
type bench struct {
	node    string
	samples string
	dir     string // temporary files
	runs    int
}

func run(b *bench, short bool) error {
	if short {
		b.runs = 1
	}
	var failed []error
	if _, err := os.Stat(filepath.Join(b.samples, "cases.json.gz")); errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("cases and recordings are skipped: %v\n", err)
	} else {
		failed = append(failed, b.cases(), b.recordings())
	}
	return errors.Join(append(failed, b.speed())...)
}

// xterm runs xterm.cjs and decodes what it prints.
func (b *bench) xterm(v any, args ...string) error {
	cmd := exec.Command("node", append([]string{"integration/screen/xterm.cjs", b.node}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("@xterm/headless: %w", err)
	}
	return json.Unmarshal(out, v)
}

func (b *bench) cases() error {
	cases, err := conform.Cases(b.samples)
	if err != nil {
		return err
	}
	plain := filepath.Join(b.dir, "cases.json")
	if err := unpack(filepath.Join(b.samples, "cases.json.gz"), plain); err != nil {
		return err
	}
	var theirs []string // what went wrong, "" where nothing did
	if err := b.xterm(&theirs, "cases", plain); err != nil {
		return err
	}
	if len(theirs) != len(cases) {
		return fmt.Errorf("@xterm/headless ran %d of %d cases", len(theirs), len(cases))
	}
	we, they := 0, 0
	var only []string
	for i := range cases {
		c := &cases[i]
		err := c.Run()
		name := c.Suite + " " + strconv.Quote(c.Name)
		if err == nil {
			we++
		}
		if theirs[i] == "" {
			they++
		}
		switch {
		case err == nil && theirs[i] != "":
			only = append(only, "only ours passes "+name+"\n    theirs: "+theirs[i])
		case err != nil && theirs[i] == "":
			only = append(only, "only theirs passes "+name+"\n    ours: "+err.Error())
		case err != nil:
			only = append(only, "neither passes "+name+"\n    ours: "+err.Error()+"\n    theirs: "+theirs[i])
		}
	}
	fmt.Printf("cases: ours %d of %d, @xterm/headless %d\n", we, len(cases), they)
	for _, line := range only {
		fmt.Println("  " + line)
	}
	if we < they {
		return fmt.Errorf("ours passes %d cases, @xterm/headless %d", we, they)
	}
	return nil
}

func unpack(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	zr, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(zr)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

func (b *bench) recordings() error {
	fmt.Println("recordings: rows that both references agree on, and what is wrong among them")
	bad := 0
	for _, name := range conform.Recordings {
		r, err := conform.Open(b.samples, name)
		if err != nil {
			return err
		}
		result := r.Run()
		fmt.Printf("  %-8s %5d rows %4d bad\n", name, result.Rows, len(result.Bad))
		for _, line := range result.Bad {
			fmt.Println("    " + line)
		}
		bad += len(result.Bad)
	}
	if bad > 0 {
		return fmt.Errorf("%d rows or cursors are wrong", bad)
	}
	return nil
}
