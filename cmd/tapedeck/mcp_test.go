//lint:file-ignore SA1019 versions of the protocol before 2026-07-28 have sampling, roots and logging

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type textIn struct {
	Text string `json:"text"`
}

// mcpServer is an MCP server for scripts, by the official SDK: its first argument is its name, its second what it answers before
// what it was given. It ends with 3, or by a signal. A third one has it serve over HTTP, to who has the bearer token of that name, each session by
// itself.
func mcpServer() {
	name, before := "files", ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	if len(os.Args) > 2 && os.Args[2] != "" {
		before = os.Args[2] + " "
	}
	if len(os.Args) > 3 {
		serveMCP(name, before, os.Args[3])
		return
	}
	s := newMCPServer(name, before)
	fmt.Fprintln(os.Stderr, name, "is there")
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
	os.Exit(3)
}

// serveMCP serves over Streamable HTTP, and at /sse over HTTP+SSE.
func serveMCP(name, before, token string) {
	get := func(*http.Request) *sdk.Server { return newMCPServer(name, before) }
	streamable, sse := sdk.NewStreamableHTTPHandler(get, nil), sdk.NewSSEHandler(get, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "http://%s\n", l.Addr())
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var h http.Handler = streamable
		if r.URL.Path == "/sse" {
			h = sse
		}
		if r.Header.Get("Authorization") != "Bearer "+token {
			h = http.NotFoundHandler()
		}
		h.ServeHTTP(w, r)
	}))
}

// newMCPServer is such a server.
func newMCPServer(name, before string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: before + s}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in textIn) (*sdk.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(_ context.Context, _ *sdk.CallToolRequest, in textIn) (*sdk.CallToolResult, any, error) {
		s.AddTool(&sdk.Tool{Name: in.Text, InputSchema: map[string]any{"type": "object"}}, nil) // tells tools/list_changed
		return text("grown"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "sample"}, func(ctx context.Context, r *sdk.CallToolRequest, in textIn) (*sdk.CallToolResult, any, error) {
		res, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 5, SystemPrompt: in.Text, Messages: []*sdk.SamplingMessage{}})
		if err != nil {
			return nil, nil, err
		}
		return text(res.Content.(*sdk.TextContent).Text), nil, nil
	})
	if name == "notes" {
		addNotes(s, text)
	}
	return s
}

// addNotes gives a server a tool that writes a note to notes.txt, and says how many it has taken; behind what stands in the file prefix.
func addNotes(s *sdk.Server, text func(string) *sdk.CallToolResult) {
	var notes []string
	sdk.AddTool(s, &sdk.Tool{Name: "note"}, func(_ context.Context, _ *sdk.CallToolRequest, in textIn) (*sdk.CallToolResult, any, error) {
		notes = append(notes, in.Text)
		before, _ := os.ReadFile("prefix")
		err := os.WriteFile("notes.txt", []byte(strings.Join(notes, "\n")+"\n"), 0o600)
		return text(fmt.Sprintf("%s%d notes", before, len(notes))), nil, err
	})
}

// askModel asks a model, after what was said before, and returns all that was said by then.
func askModel(said []map[string]string, text string) ([]map[string]string, error) {
	said = append(said, map[string]string{"role": "user", "content": text})
	body, err := json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": said})
	if err != nil {
		return said, err
	}
	req, err := http.NewRequest(http.MethodPost, "https://api.anthropic.com/v1/messages", bytes.NewReader(body))
	if err != nil {
		return said, err
	}
	req.Header.Set("X-Api-Key", os.Getenv("ANTHROPIC_API_KEY"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return said, err
	}
	defer res.Body.Close()
	var answer struct{ Content []struct{ Text string } }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Content) == 0 {
		return said, fmt.Errorf("the model: %s %w", res.Status, err)
	}
	fmt.Println("model:", answer.Content[0].Text)
	return append(said, map[string]string{"role": "assistant", "content": answer.Content[0].Text}), nil
}

// mcpClient is an MCP client for scripts: mcpclient [-version V] [-http URL] [-sample TEXT] [-changed] [TOOL=TEXT…] -- SERVER…. It prints the
// server's name, its tools and what the tools answer, or how they fail. The tool "ask" is a model, whose last answer "@" stands for.
func mcpClient() {
	version := flag.String("version", "", "of the protocol")
	url := flag.String("http", "", "of a server")
	changed := flag.Bool("changed", false, "wait, behind the calls, until the server says that its tools have changed")
	sample := flag.String("sample", "", "what the client answers when it is asked for a message")
	term := flag.Bool("term", false, "end the server by SIGTERM, with its stdin open")
	flag.CommandLine.Parse(os.Args[1:])
	calls := flag.Args()
	asks := &http.Client{Transport: withToken{}}
	var tr sdk.Transport = &sdk.StreamableClientTransport{Endpoint: *url, HTTPClient: asks}
	if strings.HasSuffix(*url, "/sse") {
		tr = &sdk.SSEClientTransport{Endpoint: *url, HTTPClient: asks}
	}
	var cmd *exec.Cmd
	for i, a := range calls {
		if a != "--" {
			continue
		}
		cmd = exec.Command(calls[i+1], calls[i+2:]...)
		cmd.Stderr = os.Stderr
		tr, calls = &sdk.CommandTransport{Command: cmd}, calls[:i]
		break
	}
	var o sdk.ClientOptions
	if *sample != "" {
		o.CreateMessageHandler = func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: *sample}}, nil
		}
	}
	news := make(chan struct{}, 1)
	if *changed {
		o.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) { news <- struct{}{} }
	}
	if err := talkMCP(sdk.NewClient(&sdk.Implementation{Name: "mcpclient", Version: *version}, &o), tr, *version, calls, func(cs *sdk.ClientSession) {
		if *changed {
			<-news
			fmt.Println("the tools have changed")
		}
		if *term {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cs.Wait()
		}
	}); err != nil {
		fmt.Fprintln(os.Stderr, "mcpclient:", err)
		os.Exit(1)
	}
	if cmd != nil && cmd.ProcessState != nil {
		fmt.Fprintln(os.Stderr, "server ended:", cmd.ProcessState)
	}
}

// withToken sends the token of the environment with each request.
type withToken struct{}

// RoundTrip implements http.RoundTripper.
func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if token := os.Getenv("NOTES_TOKEN"); token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func talkMCP(c *sdk.Client, tr sdk.Transport, version string, calls []string, end func(*sdk.ClientSession)) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cs, err := c.Connect(ctx, tr, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return err
	}
	tools, err := cs.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Print(cs.InitializeResult().ServerInfo.Name, ":")
	for _, t := range tools.Tools {
		fmt.Print(" ", t.Name)
	}
	fmt.Println()
	var said []map[string]string
	for _, call := range calls {
		name, text, _ := strings.Cut(call, "=")
		if name == "ask" {
			if said, err = askModel(said, text); err != nil {
				return err
			}
			continue
		}
		if text == "@" {
			text = said[len(said)-1]["content"]
		}
		res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: map[string]any{"text": text}})
		if err != nil {
			fmt.Println("failed:", err)
			continue
		}
		b, _ := json.Marshal(res.Content)
		fmt.Println(string(b))
	}
	end(cs)
	if err := cs.Close(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	return nil
}

// mcpServing runs a command in the background of a script: mcpserving FILE CMD…. When the command has said on
// stderr where it listens, that URL stands in FILE. An interrupt ends both.
func mcpServing() {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		buf := make([]byte, 4096)
		var said string
		for {
			n, err := stderr.Read(buf)
			said += string(buf[:n])
			os.Stderr.Write(buf[:n])
			if at := strings.Index(said, "http://"); at >= 0 {
				if url, _, whole := strings.Cut(said[at:], "\n"); whole {
					_ = os.WriteFile(os.Args[1]+".new", []byte(url), 0o644)
					_ = os.Rename(os.Args[1]+".new", os.Args[1])
				}
			}
			if err != nil {
				return
			}
		}
	}()
	<-stop
	_ = cmd.Process.Signal(syscall.SIGTERM) // a shell without job control has it ignore interrupts
	_ = cmd.Wait()
	fmt.Fprintln(os.Stderr, "served:", cmd.ProcessState)
}
