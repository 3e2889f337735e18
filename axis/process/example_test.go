package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A program that takes a *process.Spawner in the place of package os/exec is tested without the commands that it runs, and what it ran
// is on a tape.
func ExampleSpawner_Command() {
	s := process.NewSpawner(&process.SpawnerOptions{Runner: process.NewPlayer([]process.Call{
		{Program: "git", Args: []string{"status", "--short"}, Stdout: " M main.go\n"},
		{Program: "git", Args: []string{"push"}, Stderr: "rejected\n", ExitCode: 1},
	}, nil)})
	var out bytes.Buffer
	w, err := tape.NewWriter(&out, &tape.Header{Producer: "example"})
	if err != nil {
		panic(err)
	}
	s.Record(tape.NewRecorder(w, nil))

	ctx := context.Background()
	status, err := s.Command(ctx, "git", "status", "--short").Output()
	fmt.Printf("%q %v\n", status, err)

	err = s.Command(ctx, "git", "push").Run()
	var exit *process.ExitError
	fmt.Println(err, errors.As(err, &exit) && exit.ExitCode() == 1)

	fmt.Println(s.Command(ctx, "git", "pull").Run())
	// Output:
	// " M main.go\n" <nil>
	// exit status 1 true
	// process: call 3: asked for git pull; the process tape has 2 calls, which are used up; add this one, or record the process tape anew (--processes record=OUT, Config.Processes.Record)
}

// What ran on this machine once is written to a process tape.
func ExampleNewCalls() {
	host := process.NewHost(nil)
	defer host.Close()
	keeper := process.NewCalls(host)
	res, err := keeper.Run(context.Background(), &process.Command{Program: "no-such-program"})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.ExitCode, res.Failure)
	if err := process.WriteCalls(os.Stdout, keeper.Calls()); err != nil {
		panic(err)
	}
	// Output:
	// 127 not found
	// [
	//   {
	//     "program": "no-such-program",
	//     "args": [],
	//     "cwd": null,
	//     "env": {},
	//     "stdout": "",
	//     "stderr": "no-such-program: command not found\n",
	//     "exit_code": 127,
	//     "duration_ms": 0,
	//     "failure": "not found"
	//   }
	// ]
}
