package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// jobWord is the first argument that makes this program do a job of a row, as a process of its own, in place of measuring.
const jobWord = "job"

// jobs are what a process of a row does: the load generator and the peer that is net/http are children of this program.
// The argument is JSON.
var jobs = map[string]func(arg []byte) error{
	"load":   doLoad,
	"stream": doStream,
	"serve":  func([]byte) error { return serveUntilEOF(encodeAgain) },
	"echoes": func([]byte) error { return serveUntilEOF(echo) },
	"talk":   doTalk,
	"opens":  doOpens,
	"write":  doWrite,
	"jailed": doJailed,

	"tape-write": func(arg []byte) error { return withTape(arg, writeTape) },
	"tape-load":  func(arg []byte) error { return withTape(arg, loadTape) },
}

// doJob does the job that args name, and returns the exit status.
func doJob(args []string) int {
	job, arg := jobs[args[0]], ""
	if len(args) > 1 {
		arg = args[1]
	}
	if job == nil {
		fmt.Fprintf(os.Stderr, "bench: there is no job %q\n", args[0])
		return 1
	}
	if err := job([]byte(arg)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// jobArgs is the command line of a job.
func (e *env) jobArgs(name string, arg any) []string {
	b, err := json.Marshal(arg)
	if err != nil {
		panic(err) // our own plain structs
	}
	return []string{e.self, jobWord, name, string(b)}
}

// writeResult puts what a job found where its caller reads it.
func writeResult(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// readResult takes what a job found, and removes the file, so that no other job's is taken for it.
func readResult(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the job left no result: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// resultFile is a path for the result of a job.
func (e *env) resultFile(name string) string { return filepath.Join(e.tmp, name+".json") }
