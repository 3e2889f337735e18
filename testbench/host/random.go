package host

import (
	"context"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

var randomFunctions = []*Function{
	{
		Name: "random.int", do: randomInt,
		Params:  []Param{{Name: "low", Type: "int"}, {Name: "high", Type: "int"}},
		Doc:     "Draws a number from low to high, both of them possible.",
		Result:  "an int",
		Example: `port = random.int(1024, 65535)`,
	},
	{
		Name: "random.bytes", do: randomBytes,
		Params:  []Param{{Name: "n", Type: "int"}},
		Doc:     "Draws n random bytes.",
		Result:  "bytes",
		Example: `token = random.bytes(16)`,
	},
}

var envFunctions = []*Function{
	{
		Name: "env.get", do: getenv,
		Params:  []Param{{Name: "name", Type: "string"}, {Name: "default", Type: "string", Optional: true}},
		Doc:     "Reads a variable of the run's environment, which holds what --env and Config.Env give and nothing else.",
		Result:  "a string, or default where it is not set",
		Example: `mode = env.get("MODE", "daily")`,
	},
}

func randomInt(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return b.Random().Int(a.integer(0), a.integer(1))
}

func randomBytes(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	n := a.integer(0)
	if n < 0 || n > testbench.MaxRandom {
		a.wrong(0, "from 0 to 16777216")
	}
	return b.Random().Bytes(int(n))
}

func getenv(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	value, ok, err := b.LookupEnv(a.text(0))
	if err != nil || ok {
		return value, err
	}
	return a.values[1], nil
}
