//lint:file-ignore SA1019 versions of the protocol before 2026-07-28 have sampling, roots and logging

package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// webTool is what the tools of these tests take.
type webTool struct {
	Text string `json:"text"`
}

// webServer is a server of the Go SDK with tools that use all that a server may say.
func webServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "tools", Version: "1"}, nil)
	text := func(t string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: t}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in webTool) (*sdk.CallToolResult, any, error) {
		return text("echo " + in.Text), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "progress"}, func(ctx context.Context, r *sdk.CallToolRequest, in webTool) (*sdk.CallToolResult, any, error) {
		for i := range 3 {
			r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Message: in.Text,
			})
		}
		return text("done " + in.Text), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "sample"}, func(ctx context.Context, r *sdk.CallToolRequest, in webTool) (*sdk.CallToolResult, any, error) {
		res, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{
			MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: in.Text}}},
		})
		if err != nil {
			return nil, nil, err
		}
		return text("model said " + res.Content.(*sdk.TextContent).Text), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(_ context.Context, _ *sdk.CallToolRequest, in webTool) (*sdk.CallToolResult, any, error) {
		s.AddTool(&sdk.Tool{Name: in.Text, InputSchema: map[string]any{"type": "object"}}, nil) // tells tools/list_changed
		return text("grown"), nil, nil
	})
	return s
}

// webClient is a session of the Go SDK's client, and what it saw beside answers.
type webClient struct {
	*sdk.ClientSession
	t       testing.TB
	changed chan struct{} // a token for each tools/list_changed

	progress chan string // each notifications/progress
}

func connect(t testing.TB, transport sdk.Transport, version string) *webClient {
	t.Helper()
	c := &webClient{t: t, changed: make(chan struct{}, 10), progress: make(chan string, 100)}
	client := sdk.NewClient(&sdk.Implementation{Name: "program", Version: "1"}, &sdk.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			said := r.Params.Messages[0].Content.(*sdk.TextContent).Text
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: strings.ToUpper(said)}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			c.progress <- fmt.Sprintf("%v %v %s", r.Params.ProgressToken, r.Params.Progress, r.Params.Message)
		},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the stream of HTTP+SSE lives as long
	t.Cleanup(cancel)
	var err error
	if c.ClientSession, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// call returns the text of a tool's answer, or its error.
func (c *webClient) call(name, text string, token any) string {
	p := &sdk.CallToolParams{Name: name, Arguments: map[string]any{"text": text}}
	if token != nil {
		p.SetProgressToken(token)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	res, err := c.CallTool(ctx, p)
	if err != nil {
		return "error: " + err.Error()
	}
	return res.Content[0].(*sdk.TextContent).Text
}

// tools are the names that tools/list gives.
func (c *webClient) tools() (names []string) {
	res, err := c.ListTools(context.Background(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, tool := range res.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// scene is what a client does with all of it; what it saw comes back. sampling says that the server may ask
// back, progress that it can tell of it.
func (c *webClient) scene(sampling, progress bool) (seen []string) {
	seen = append(seen, c.InitializeResult().ProtocolVersion, strings.Join(c.tools(), " "), c.call("echo", "one", nil))
	seen = append(seen, c.call("progress", "way", "token-7"), c.call("echo", "one", nil))
	if sampling {
		seen = append(seen, c.call("sample", "hello", nil))
	}
	seen = append(seen, c.call("nothing", "x", nil))
	for i := 0; progress && i < 3; i++ {
		seen = append(seen, next(c.t, c.progress))
	}
	return seen
}

// next is what comes next.
func next[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Error("nothing came for 20 s")
	}
	return v
}

var webVersions = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// replayed records what run does with a server, and does it again with the server gone: the same comes of it, nothing is refused or
// not asked for, and both tapes say the same.
func replayed(t *testing.T, h http.Handler, run func(g *webRig) []string) *webRig {
	t.Helper()
	g := recordWeb(t, h)
	want := run(g)
	g.replay(func(again *webRig) {
		if diff := cmp.Diff(want, run(again)); diff != "" {
			again.t.Errorf("replay differs (-recorded +replayed):\n%s", diff)
		}
		again.faithful()
		if diff := cmp.Diff(g.calls(), again.calls()); diff != "" {
			again.t.Errorf("tapes differ (-recorded +replayed):\n%s", diff)
		}
	})
	return g
}

// overSSE is the version whose transport is HTTP+SSE.
const overSSE = "2024-11-05"

// transportTo is that of a version to the servers at a URL: at /mcp, and at /sse.
func transportTo(url, version string, c *http.Client) sdk.Transport {
	if version == overSSE {
		return &sdk.SSEClientTransport{Endpoint: url + "/sse", HTTPClient: c}
	}
	return &sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: c}
}

func (g *webRig) connect(version string) *webClient {
	return connect(g.t, transportTo("http://"+webHost, version, g.client()), version)
}

func (c *webClient) close() {
	if err := c.Close(); err != nil {
		c.t.Error(err)
	}
}

// What the Go SDK's client sees of the Go SDK's server over Streamable HTTP is the same on the replay, with the server gone.
func TestStreamableReplay(t *testing.T) {
	t.Parallel()
	for _, version := range webVersions {
		for _, asJSON := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s json=%t", version, asJSON), func(t *testing.T) {
				server := webServer()
				modern := version == "2026-07-28"
				h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
					&sdk.StreamableHTTPOptions{JSONResponse: asJSON, Stateless: modern})
				g := replayed(t, h, func(g *webRig) []string {
					c := g.connect(version)
					defer c.close()
					return c.scene(!asJSON && !modern, !asJSON || !modern)
				})
				if calls := g.calls(); len(calls) < 6 || !strings.HasPrefix(calls[0], "1 tools client ") {
					t.Errorf("recorded %q", calls)
				}
			})
		}
	}
}

// HTTP+SSE of 2024-11-05: all answers come on the GET.
func TestSSEReplay(t *testing.T) {
	t.Parallel()
	server := webServer()
	h := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil)
	replayed(t, h, func(g *webRig) []string {
		c := g.connect(overSSE)
		defer c.close()
		return c.scene(true, true)
	})
}

// A client that asks server/discover first and then begins with initialize holds one conversation, not two.
func TestDiscoverThenInitialize(t *testing.T) {
	t.Parallel()
	server := webServer()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	g := replayed(t, h, func(g *webRig) []string {
		c := g.connect("")
		defer c.close()
		return c.scene(true, true)
	})
	if calls := g.calls(); calls[0] != "1 tools client initialize true" || strings.Contains(strings.Join(calls, ""), "tools#2") {
		t.Errorf("recorded %q", calls)
	}
}

// A notification on the GET stream comes where it came.
func TestStreamOfItsOwn(t *testing.T) {
	t.Parallel()
	server := webServer()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	replayed(t, h, func(g *webRig) []string {
		c := g.connect("2025-11-25")
		defer c.close()
		seen := []string{c.call("grow", "new", nil)}
		next(c.t, c.changed)
		return append(seen, c.tools()...)
	})
}

// Many calls at once are each answered with their own answer, also by a client that numbers them otherwise.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const n = 32
	for _, asJSON := range []bool{false, true} {
		server := webServer()
		all := make(chan struct{})
		var there sync.WaitGroup
		there.Add(n)
		sdk.AddTool(server, &sdk.Tool{Name: "wait"}, func(_ context.Context, _ *sdk.CallToolRequest, in webTool) (*sdk.CallToolResult, any, error) {
			there.Done()
			<-all
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "waited " + in.Text}}}, nil, nil
		})
		go func() { there.Wait(); close(all) }()
		h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{JSONResponse: asJSON})
		pings := 0
		replayed(t, h, func(g *webRig) []string {
			c := g.connect("2025-06-18")
			defer c.close()
			for range pings { // each takes an id
				if err := c.Ping(context.Background(), nil); err != nil {
					g.t.Error(err)
				}
			}
			pings += 3
			seen := make([]string, n)
			var done sync.WaitGroup
			for i := range n {
				done.Go(func() { seen[i] = c.call("wait", fmt.Sprint(i), nil) })
			}
			done.Wait()
			return seen
		})
	}
}
