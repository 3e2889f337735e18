package deck_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/coder/websocket"
)

func init() {
	programs["mcp-client"] = playMCPClient
	programs["mcp-server"] = playMCPServer
	programs["tools"] = playTools
}

// playTools runs its arguments as scripts of a shell that it talks with by pipes, and prints what each says and how it ends. What a
// script writes to stderr comes with its own.
func playTools(scripts []string) int {
	for _, s := range scripts {
		cmd := exec.Command("sh", "-c", s)
		cmd.Stdin, cmd.Stderr = strings.NewReader("one\ntwo\n"+strings.Repeat("x", 1<<17)+"\n"), os.Stderr
		var out strings.Builder
		cmd.Stdout = &out
		err := cmd.Run()
		fmt.Fprintf(os.Stderr, "%d bytes, %.40q: %v\n", out.Len(), out.String(), err)
	}
	return 0
}

// An mcpScene is what the client of a test does: it starts servers, calls them in turn and prints what they answer.
type mcpScene struct {
	Fetch   string // a URL that the client fetches first
	Servers []mcpStart
	Calls   []mcpCall
	Leave   bool    // it ends without a word to its servers, which are running
	Kill    bool    // it kills its servers in the end
	Forever mcpCall // made again and again in the end, where it has a Method
	Look    string  // a file of which it prints in the end whether it is there
	Print   int     // bytes of an answer that are printed; 0 is all
}

// An mcpStart is a server that the client starts.
type mcpStart struct {
	Argv []string
	Env  []string
}

// An mcpCall is one request to a server; a Method that begins with "notifications/" is a notification.
type mcpCall struct {
	Server int
	Method string
	Params any `json:",omitempty"`
}

// tool is a call of a tool.
func tool(server int, name string, args any) mcpCall {
	return mcpCall{server, "tools/call", map[string]any{"name": name, "arguments": args}}
}

// An mcpPeer is the client's side of one server.
type mcpPeer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int

	greeting string
}

// playMCPClient plays the scene in its first argument, in which ${NAME} is the variable NAME. The servers are the test binary again,
// or whatever else.
func playMCPClient(args []string) int {
	var scene mcpScene
	if err := json.Unmarshal([]byte(os.Expand(args[0], os.Getenv)), &scene); err != nil {
		return fail(err)
	}
	if scene.Fetch != "" {
		b, err := get(scene.Fetch)
		fmt.Printf("%s %v\n", b, err)
	}
	var peers []*mcpPeer
	for _, s := range scene.Servers {
		p, err := startMCP(s)
		if err != nil {
			return fail(err)
		}
		fmt.Println("hello from", p.greeting)
		peers = append(peers, p)
	}
	for _, c := range scene.Calls {
		said, err := peers[c.Server].call(c.Method, c.Params)
		if err != nil {
			fmt.Printf("%d %s: %v\n", c.Server, c.Method, err)
			continue
		}
		if scene.Print > 0 && len(said) > scene.Print {
			said = fmt.Sprintf("%s … %d bytes", said[:scene.Print], len(said))
		}
		fmt.Printf("%d %s: %s\n", c.Server, c.Method, said)
	}
	for c := scene.Forever; c.Method != ""; {
		if _, err := peers[c.Server].call(c.Method, c.Params); err != nil {
			return fail(err)
		}
	}
	if scene.Leave {
		return 0
	}
	for i, p := range peers {
		if scene.Kill {
			p.cmd.Process.Kill()
		} else {
			p.in.Close()
		}
		rest, _ := io.ReadAll(p.out)
		fmt.Printf("%d said %q in the end: %v\n", i, rest, p.cmd.Wait())
	}
	if scene.Look != "" {
		_, err := os.Stat(scene.Look)
		fmt.Printf("%s is there: %v\n", scene.Look, err == nil)
	}
	return 0
}

// startMCP starts a server and says hello to it.
func startMCP(s mcpStart) (*mcpPeer, error) {
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env = append(os.Environ(), append([]string{programVar + "=mcp-server"}, s.Env...)...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, err
	}
	p := &mcpPeer{cmd: cmd, in: in, out: bufio.NewReader(out)}
	return p, p.hello()
}

// hello begins the conversation.
func (p *mcpPeer) hello() error {
	said, err := p.call("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	p.greeting = said
	_, err = p.call("notifications/initialized", nil)
	return err
}

// call asks and returns the answer as it came; "" of a notification.
func (p *mcpPeer) call(method string, params any) (string, error) {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	notification := strings.HasPrefix(method, "notifications/")
	if !notification {
		p.id++
		m["id"] = p.id
	}
	b, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return "", err
	}
	if notification {
		return "", nil
	}
	line, err := p.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// playMCPServer is a server called as its first argument says. Its tools: echo gives back its arguments, big as many bytes as
// asked for, fetch what is at a URL, listen what a WebSocket says, ask what a server of its own fetched there, env the value of a variable, make makes an empty file, die ends it with a status, silent never answers.
func playMCPServer(args []string) int {
	if path := os.Getenv("MCP_STARTED"); path != "" {
		if err := os.WriteFile(path, []byte("here I was\n"), 0o644); err != nil {
			return fail(err)
		}
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Println("what is", string(line))
			continue
		}
		if m.ID == nil {
			continue
		}
		var result any
		switch m.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": args[0], "version": "1"},
			}
		case "tools/call":
			text, code := playTool(m.Params.Name, m.Params.Arguments)
			if code != 0 {
				return code
			}
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
		default:
			result = map[string]any{}
		}
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		if err != nil {
			return fail(err)
		}
		if _, err := os.Stdout.Write(append(b, '\n')); err != nil {
			return fail(err)
		}
	}
}

// playTool returns what a tool says, or the status that the server ends with.
func playTool(name string, arguments json.RawMessage) (text string, code int) {
	var a struct {
		Size int
		Name string
		Code int
	}
	_ = json.Unmarshal(arguments, &a)
	switch name {
	case "big":
		return strings.Repeat("0123456789abcdef", a.Size/16), 0
	case "env":
		return os.Getenv(a.Name), 0
	case "make":
		if err := os.WriteFile(a.Name, nil, 0o644); err != nil {
			return err.Error(), 0
		}
	case "fetch":
		b, err := get(a.Name)
		return fmt.Sprintf("%s %v", b, err), 0
	case "listen":
		said, err := listen(a.Name)
		return fmt.Sprintf("%s %v", said, err), 0
	case "ask": // another server, which it starts
		exe, err := os.Executable()
		if err != nil {
			return err.Error(), 0
		}
		out, err := askInner(mcpStart{Argv: []string{exe, "inner"}}, a.Name)
		return fmt.Sprintf("%s %v", out, err), 0
	case "die":
		return "", a.Code
	case "silent":
		time.Sleep(time.Hour)
	}
	return string(arguments), 0
}

// askInner starts a server of a server, lets it fetch a URL and write a file, and ends it.
func askInner(s mcpStart, url string) (string, error) {
	p, err := startMCP(s)
	if err != nil {
		return "", err
	}
	said, err := p.call("tools/call", map[string]any{"name": "fetch", "arguments": map[string]any{"Name": url}})
	if _, errMake := p.call("tools/call", map[string]any{"name": "make", "arguments": map[string]any{"Name": "made-inside"}}); err == nil {
		err = errMake
	}
	p.in.Close()
	return said, errors.Join(err, p.cmd.Wait())
}

// listen opens a WebSocket, says one word and returns what it hears.
func listen(url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return "", err
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
		return "", err
	}
	_, b, err := c.Read(ctx)
	return string(b), errors.Join(err, c.Close(websocket.StatusNormalClosure, ""))
}
