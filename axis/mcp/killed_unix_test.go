//go:build unix

package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestKilledRecorderChild is the recorder of TestKilledRecorder: it relays between the descriptors 3 to 6.
func TestKilledRecorderChild(t *testing.T) {
	dir := os.Getenv("MCP_TEST_TAPE")
	if dir == "" {
		t.Skip("is run by TestKilledRecorder")
	}
	log, _ := diskLog(t, dir, scrub.New(scrub.Key{1}, nil))
	file := func(fd uintptr) *os.File { return os.NewFile(fd, strconv.Itoa(int(fd))) }
	_, _ = mcp.Relay(context.Background(), &mcp.RelayOptions{
		Log: log, Opened: &mcp.Opened{Transport: mcp.Stdio, Program: "server"},
		ClientIn: file(3), ClientOut: file(4), ServerIn: file(5), ServerOut: file(6),
	})
}

// Whatever a client was answered is on the tape, whole, when the recorder is killed at any moment.
func TestKilledRecorder(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 7, 40} {
		t.Run(strconv.Itoa(after), func(t *testing.T) { killAfter(t, after) })
	}
}

// killAfter kills a recorder while answers behind the given one come.
func killAfter(t *testing.T, after int) {
	dir := t.TempDir()
	clientIn, toServer := pipe(t)
	fromServer, clientOut := pipe(t)
	serverIn, inOfServer := pipe(t)
	serverOut, outOfServer := pipe(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledRecorderChild$")
	cmd.Env = append(os.Environ(), "MCP_TEST_TAPE="+dir)
	cmd.ExtraFiles = []*os.File{clientIn, clientOut, inOfServer, serverOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	go answering(serverIn, outOfServer, 6000)
	go func() { // a client that asks as fast as it can
		defer toServer.Close()
		_, err := io.WriteString(toServer, askInit+"\n")
		for i := 1; err == nil; i++ {
			_, err = fmt.Fprintf(toServer, askRead+"\n", i)
		}
	}()
	answers := answersUntilKilled(t, cmd, fromServer, after)
	if _, err := cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	have := answersOnTape(t, dir)
	for _, a := range answers {
		if !have[a] {
			t.Fatalf("the client got %.80s, which is not among the %d on the tape", a, len(have))
		}
	}
	t.Logf("%d answered, %d on the tape", len(answers), len(have))
}

// answersUntilKilled reads whole answers, and kills the recorder when it has read so many.
func answersUntilKilled(t *testing.T, cmd *exec.Cmd, from io.Reader, after int) (answers []string) {
	t.Helper()
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			if len(answers) < after {
				t.Errorf("%d answers came: %v", len(answers), err)
			}
			return answers
		}
		if answers = append(answers, strings.TrimSuffix(line, "\n")); len(answers) == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
}

// answersOnTape are those that a tape of a killed recorder has, each with its blob.
func answersOnTape(t *testing.T, dir string) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "run.tape"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tape.NewReaderOptions(bytes.NewReader(b), "tape", &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	store, have := openStore(t, dir), make(map[string]bool)
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := rec.Kind.(*tape.MCPJSONRPC); ok {
			text, err := k.Response.Bytes(store)
			if err != nil {
				t.Fatal(err)
			}
			have[string(text)] = true
		}
	}
	return have
}
