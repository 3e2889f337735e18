package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// served runs do with the URL of a daemon of its own, as tapedeck serve --no-auth --socket PATH would be.
func served(do func(ctx context.Context, url string) error) {
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	d, err := daemon.Open(ctx, &daemon.Options{Socket: filepath.Join(dir, "s"), NoAuth: true})
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- d.Serve(ctx) }()
	if err := do(ctx, "unix:"+filepath.Join(dir, "s")); err != nil {
		fmt.Println(err)
	}
	stop()
	<-ended
}

// An agent has its tool calls judged, served and traced.
func Example() {
	served(func(ctx context.Context, url string) error {
		type file struct{ Path string }
		read := client.Func("read", "a file's text", func(_ context.Context, f file) (any, error) {
			return map[string]string{"text": "the text of " + f.Path}, nil
		})
		c, err := client.Dial(ctx, url, &client.Options{AgentID: "coder", Tools: []client.Tool{read}})
		if err != nil {
			return err
		}
		defer c.Close()
		secrets := rpcapi.PolicyRule{Name: "no_secrets", Rule: "deny_tool_param", Target: "read", Key: "path", Pattern: ".env"}
		if err := c.RegisterPolicy(ctx, rpcapi.PolicyRegisterParams{PolicyRule: secrets}); err != nil {
			return err
		}

		run, err := c.Start(ctx, rpcapi.RunsStartParams{Intent: "read two files"})
		if err != nil {
			return err
		}
		for _, path := range []string{"README.md", ".env"} {
			result, err := c.Submit(ctx, &rpcapi.Proposal{Actions: []rpcapi.Action{{
				Type: "tool_call", Tool: "read", Parameters: json.RawMessage(fmt.Sprintf(`{"path":%q}`, path)),
			}}})
			if err != nil {
				return err
			}
			fmt.Println(path, result.Results[0].Status, string(result.Results[0].Output))
		}
		if err := run.Complete(ctx, rpcapi.Outcome{Status: "partial_success"}); err != nil {
			return err
		}
		for record, err := range run.Records(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(record.Cursor, record.Kind)
		}
		return nil
	})
	// Output:
	// README.md succeeded {"text":"the text of README.md"}
	// .env rejected null
	// 1 started
	// 2 turn
	// 3 turn
	// 4 ended
}

// Turns of a program that calls its tools itself, followed by another.
func ExampleClient_Subscribe() {
	served(func(ctx context.Context, url string) error {
		agent, err := client.Dial(ctx, url, &client.Options{AgentID: "coder"})
		if err != nil {
			return err
		}
		defer agent.Close()
		run, err := agent.Start(ctx, rpcapi.RunsStartParams{Intent: "say hello", IdempotencyKey: "hello-1"})
		if err != nil {
			return err
		}
		watcher, err := client.Dial(ctx, url, &client.Options{AgentID: "coder"})
		if err != nil {
			return err
		}
		defer watcher.Close()

		for record, err := range watcher.Subscribe(ctx, "hello-1", 0) {
			if err != nil {
				return err
			}
			switch record.Kind {
			case "started": // by now it is followed
				tool := "say"
				turn := rpcapi.Turn{Tool: &tool, Parameters: json.RawMessage(`{"text":"hello"}`)}
				if _, err := run.RecordTurns(ctx, turn); err != nil {
					return err
				}
			case "turn":
				fmt.Println(strings.TrimSpace(string(record.JSON)))
				if err := run.Complete(ctx, rpcapi.Outcome{Status: "success"}); err != nil {
					return err
				}
			}
		}
		fmt.Println("ended")
		return nil
	})
	// Output:
	// {"record":"turn","index":0,"tool":"say","parameters":{"text":"hello"},"verifier_verdict":"not_run"}
	// ended
}
