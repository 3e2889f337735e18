package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
)

var update = flag.Bool("update-readme", false, "write the transcript of quickstart into README.md")

const readme = "../../README.md"

// volatile are the parts of the transcript that differ from run to run.
var volatile = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:8080"},
	{regexp.MustCompile(`\S*/\.tapedeck/\S+\.rec`), ".tapedeck/20261121-090000-5f0c3a9d71e2.rec"},
	{regexp.MustCompile(`Done in [0-9.]+ s`), "Done in 0.3 s"},
	{regexp.MustCompile(`\$TMP/\S*|\S*/tapedeck\.test`), "tapedeck"},
}

// TestReadmeTranscript holds the transcript in the README against what quickstart prints.
func TestReadmeTranscript(t *testing.T) {
	if d := deck.Diagnose(); !d.Works {
		t.Skipf("no jail here: %+v", d.Checks)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var out, errs bytes.Buffer
	if status := run(context.Background(), []string{"quickstart"}, streams{strings.NewReader(""), &out, &errs}); status != 0 {
		t.Fatalf("quickstart ended with %d:\n%s%s", status, &out, &errs)
	}
	got := out.String()
	for _, v := range volatile {
		got = v.re.ReplaceAllString(got, v.with)
	}
	got = "```console\n$ go run ./cmd/tapedeck quickstart\n" + got + "```\n"
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(string(b), "```console\n")
	end := begin + strings.Index(string(b)[begin+3:], "```\n") + len("```\n") + 3
	if begin < 0 || end < begin {
		t.Fatal("README.md has no transcript")
	}
	if *update {
		if err := os.WriteFile(readme, []byte(string(b[:begin])+got+string(b[end:])), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(b[begin:end]); got != want {
		t.Errorf("quickstart prints (go test ./cmd/tapedeck -run Readme -update-readme writes it):\n%s\nREADME.md has:\n%s", got, want)
	}
}

// examples are those in the help of a command and of all below it.
func examples(c *cobra.Command) string {
	text := "\n" + c.Example
	for _, sub := range c.Commands() {
		text += examples(sub)
	}
	return text
}

// TestReadmeCommands takes every tapedeck command line of the README, and of the examples in the help, through the parser:
// each must name a command and flags that exist.
func TestReadmeCommands(t *testing.T) {
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	text += examples(newRootCommand(stdStreams(), ""))
	lines := regexp.MustCompile(`(?m)^\s*(?:\$ )?(?:go run \./cmd/)?tapedeck (.+)$`).FindAllStringSubmatch(text, -1)
	if len(lines) < 20 {
		t.Fatalf("only %d command lines found", len(lines))
	}
	for _, m := range lines {
		line, _, _ := strings.Cut(m[1], " #")
		line, _, _ = strings.Cut(line, " &&")
		line, _, _ = strings.Cut(line, " |")
		args := strings.Fields(strings.ReplaceAll(line, "~/src/agent", t.TempDir())) // --tree looks whether it is there
		cmd, rest, err := newRootCommand(stdStreams(), "").Find(args)
		if err != nil || cmd.Name() == "tapedeck" {
			t.Errorf("%q: no such command: %v", line, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}
