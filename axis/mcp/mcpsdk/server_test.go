//lint:file-ignore SA1019 versions of the protocol before 2026-07-28 have sampling, roots and logging

package mcpsdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// runServer is set in the environment of this test's binary where it is to be the server.
const runServer = "TAPEDECK_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(runServer) != "" {
		fmt.Fprintln(os.Stderr, "server: ready")
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(3) // which a Served ends with, too
	}
	os.Exit(m.Run())
}

type textIn struct {
	Text string `json:"text"`
}

// newServer is a server that has everything. What it says differs from one process to the next.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "everything", Version: "1"}, nil)
	add := func(name string, f func(ctx context.Context, r *sdk.CallToolRequest, in textIn) (string, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name}, func(ctx context.Context, r *sdk.CallToolRequest, in textIn) (*sdk.CallToolResult, any, error) {
			text, err := f(ctx, r, in)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, err
		})
	}
	add("echo", func(_ context.Context, _ *sdk.CallToolRequest, in textIn) (string, error) { return in.Text, nil })
	add("fail", func(context.Context, *sdk.CallToolRequest, textIn) (string, error) {
		return "", fmt.Errorf("it failed")
	})
	add("pid", func(context.Context, *sdk.CallToolRequest, textIn) (string, error) {
		return fmt.Sprint(os.Getpid()), nil
	})
	add("hang", func(ctx context.Context, r *sdk.CallToolRequest, _ textIn) (string, error) {
		p := &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: hangs}
		if err := r.Session.NotifyProgress(ctx, p); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", ctx.Err()
	})
	add("progress", func(ctx context.Context, r *sdk.CallToolRequest, _ textIn) (string, error) {
		for i := range 3 {
			p := &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 3}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	add("log", func(ctx context.Context, r *sdk.CallToolRequest, in textIn) (string, error) {
		return "logged", r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: in.Text})
	})
	add("sample", func(ctx context.Context, r *sdk.CallToolRequest, in textIn) (string, error) {
		res, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 5, SystemPrompt: in.Text, Messages: []*sdk.SamplingMessage{}})
		if err != nil {
			return "", err
		}
		return res.Content.(*sdk.TextContent).Text, nil
	})
	add("roots", func(ctx context.Context, r *sdk.CallToolRequest, _ textIn) (string, error) {
		res, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		return res.Roots[0].URI, nil
	})
	add("elicit", func(ctx context.Context, r *sdk.CallToolRequest, in textIn) (string, error) {
		res, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: in.Text, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		if err != nil {
			return "", err
		}
		return res.Action, nil
	})
	addTogether(s)
	s.AddResource(&sdk.Resource{URI: "test://a", Name: "a"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "test://a", Text: fmt.Sprintf("of %d", os.Getpid())}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			m := &sdk.PromptMessage{Role: "user", Content: &sdk.TextContent{Text: "hello " + r.Params.Arguments["who"]}}
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{m}}, nil
		})
	return s
}

// hangs is said by the tool hang when it does.
const hangs = "it hangs"

// together is how many calls of the tool of that name come at once.
const together = 32

// addTogether adds a tool that answers when 32 calls are there, the last one first.
func addTogether(s *sdk.Server) {
	var mu sync.Mutex
	var waiting []chan struct{}
	sdk.AddTool(s, &sdk.Tool{Name: "together"}, func(ctx context.Context, _ *sdk.CallToolRequest, in textIn) (*sdk.CallToolResult, any, error) {
		turn := make(chan struct{})
		mu.Lock()
		if waiting = append(waiting, turn); len(waiting) == together {
			go func(all []chan struct{}) {
				for i := range all {
					close(all[len(all)-1-i])
					time.Sleep(200 * time.Microsecond) // so that the answers leave in this order
				}
			}(waiting)
			waiting = nil
		}
		mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "for " + in.Text}}}, nil, nil
	})
}

// A heard is what a client of the everything server got, in one text a step.
type heard struct {
	mu    sync.Mutex
	notes []string
	hangs func() // called when the tool hang does
}

func (h *heard) note(what string, v any) {
	b, _ := json.Marshal(v)
	h.mu.Lock()
	h.notes = append(h.notes, what+" "+string(b))
	h.mu.Unlock()
}

// newClient is a client that answers everything, and notes into h what it is told.
func newClient(h *heard) *sdk.Client {
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "sampled " + r.Params.SystemPrompt}}, nil
		},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "decline"}, nil
		},
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) { h.note("log", r.Params) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			h.note("progress", []any{r.Params.ProgressToken, r.Params.Progress})
			if r.Params.Message == hangs {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.hangs()
			}
		},
	})
	c.AddRoots(&sdk.Root{URI: "file:///root"})
	return c
}

// scene does everything once, and returns what came of it. token is the progress token of this run.
func scene(t testing.TB, ctx context.Context, cs *sdk.ClientSession, h *heard, token string) []string {
	t.Helper()
	var out []string
	add := func(what string, v any, err error) {
		if err != nil {
			v = err.Error()
		}
		b, errJSON := json.Marshal(v)
		if errJSON != nil {
			t.Fatal(errJSON)
		}
		out = append(out, what+" "+string(b))
	}
	call := func(name, text string) {
		res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: map[string]any{"text": text}})
		add(name, res, err)
	}
	add("server", cs.InitializeResult().ServerInfo, nil)
	tools, err := cs.ListTools(ctx, nil)
	add("tools", tools, err)
	resources, err := cs.ListResources(ctx, nil)
	add("resources", resources, err)
	read, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{URI: "test://a"})
	add("read", read, err)
	none, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{URI: "test://none"})
	add("read none", none, err)
	prompt, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "you"}})
	add("prompt", prompt, err)
	add("ping", nil, cs.Ping(ctx, nil))
	add("level", nil, cs.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: "debug"}))
	call("echo", "ä <&> 😀")
	call("fail", "")
	call("pid", "")
	call("pid", "")
	call("sample", "system")
	call("roots", "")
	call("elicit", "sure?")
	call("log", "a log")
	p := &sdk.CallToolParams{Name: "progress", Arguments: map[string]any{"text": ""}}
	p.SetProgressToken(token)
	res, err := cs.CallTool(ctx, p)
	add("progress", res, err)
	ctxHang, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	h.hangs = cancel
	h.mu.Unlock()
	p = &sdk.CallToolParams{Name: "hang", Arguments: map[string]any{"text": ""}}
	p.SetProgressToken("hang")
	_, err = cs.CallTool(ctxHang, p)
	add("hang", nil, err)
	call("echo", "the last")
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(out, h.notes...)
}
