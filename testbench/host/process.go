package host

import (
	"context"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

var processFunctions = []*Function{
	{
		Name: "process.run", do: runProcess,
		Params: []Param{
			{Name: "program", Type: "string"}, {Name: "args", Type: "list of strings"},
			{Name: "cwd", Type: "string", Optional: true}, {Name: "stdin", Type: "string or bytes", Optional: true},
		},
		Doc:     "Runs a command to its end. A status other than 0 is no error.",
		Result:  "a dict: stdout and stderr, strings (bytes where they are not UTF-8); exit_code and duration_ms, ints",
		Example: `status = process.run("git", ["status", "--short"])["stdout"]`,
	},
}

func runProcess(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	c := &process.Command{Program: a.text(0), Args: a.texts(1), Stdin: a.bytesOr(3)}
	if cwd := a.textOr(2); a.values[2] != nil {
		c.Cwd = &cwd
	}
	r, err := b.Processes().Run(ctx, c)
	if err != nil {
		return nil, err
	}
	return Object{
		{"stdout", Text(r.Stdout)}, {"stderr", Text(r.Stderr)},
		{"exit_code", int64(r.ExitCode)}, {"duration_ms", r.Duration.Milliseconds()},
	}, nil
}
