package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// An acpMessage is one of the Agent Client Protocol.
type acpMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// text is what a message holds under a path of keys, in its params or its result.
func (m *acpMessage) text(path ...string) string {
	var v any
	if err := json.Unmarshal(append(m.Params, m.Result...), &v); err != nil {
		return ""
	}
	for _, key := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			v = at[0]
		}
	}
	s, _ := v.(string)
	return s
}

// An acpPeer is one end of a connection.
type acpPeer struct {
	in   *bufio.Scanner
	out  io.Writer
	last int
}

func (p *acpPeer) next() (*acpMessage, error) {
	if !p.in.Scan() {
		return nil, io.EOF
	}
	m := new(acpMessage)
	return m, json.Unmarshal(p.in.Bytes(), m)
}

func (p *acpPeer) send(m *acpMessage) {
	m.Version = "2.0"
	b, err := json.Marshal(m)
	if err == nil {
		_, _ = p.out.Write(append(b, '\n'))
	}
}

func (p *acpPeer) tell(method, params string) {
	p.send(&acpMessage{Method: method, Params: json.RawMessage(params)})
}

func (p *acpPeer) answer(m *acpMessage, result string) {
	p.send(&acpMessage{ID: m.ID, Result: json.RawMessage(result)})
}

// ask asks, and gives what comes before the answer to meanwhile.
func (p *acpPeer) ask(method, params string, meanwhile func(*acpMessage)) (*acpMessage, error) {
	p.last++
	id := fmt.Sprintf(`"%s-%d"`, rand.Text()[:8], p.last) // another one in each run
	p.send(&acpMessage{ID: json.RawMessage(id), Method: method, Params: json.RawMessage(params)})
	for {
		m, err := p.next()
		if err != nil || m.Method == "" && string(m.ID) == id {
			return m, err
		}
		meanwhile(m)
	}
}

// acpAgent is an agent for scripts. It reads the file that a prompt names by the client, asks whether it may, and writes it as
// answer.txt by itself. The prompt "wait" waits until it is cancelled.
func acpAgent() {
	p := &acpPeer{in: bufio.NewScanner(os.Stdin), out: os.Stdout}
	for {
		m, err := p.next()
		if err != nil {
			return
		}
		switch m.Method {
		case "initialize":
			p.answer(m, `{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"scribe","version":"1"},"authMethods":[]}`)
		case "session/new":
			p.answer(m, `{"sessionId":"`+rand.Text()+`"}`)
		case "session/prompt":
			p.prompt(m)
		}
	}
}

func (p *acpPeer) prompt(m *acpMessage) {
	session, file := m.text("sessionId"), m.text("prompt", "", "text")
	update := func(text string) {
		p.tell("session/update", fmt.Sprintf(`{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}`, session, text))
	}
	stopped := false
	heard := func(m *acpMessage) { stopped = stopped || m.Method == "session/cancel" }
	update("I see to " + file)
	for file == "wait" && !stopped {
		m, err := p.next()
		if err != nil {
			return
		}
		heard(m)
	}
	if stopped {
		p.answer(m, `{"stopReason":"cancelled"}`)
		return
	}
	read, _ := p.ask("fs/read_text_file", fmt.Sprintf(`{"sessionId":%q,"path":%q}`, session, file), heard)
	may, _ := p.ask("session/request_permission", fmt.Sprintf(`{"sessionId":%q,"toolCall":{"toolCallId":"1"},"options":[{"optionId":"yes"}]}`, session), heard)
	if may != nil && may.text("outcome", "optionId") == "yes" {
		_ = os.Mkdir("answer.lock", 0o755)
		_ = os.WriteFile("answer.txt", []byte(strings.ToUpper(throughCat(read.text("content")))), 0o644)
		_ = os.Remove("answer.lock")
		update("written")
	}
	p.answer(m, `{"stopReason":"end_turn"}`)
}

// throughCat is what a program says that gets text over a pipe.
func throughCat(text string) string {
	cat := exec.Command("cat")
	in, errIn := cat.StdinPipe()
	out, errOut := cat.StdoutPipe()
	if errors.Join(errIn, errOut, cat.Start()) != nil {
		return ""
	}
	_, _ = io.WriteString(in, text)
	in.Close()
	b, _ := io.ReadAll(out)
	_ = cat.Wait()
	return strings.TrimSpace(string(b))
}

// acpClient is a client for scripts: acpclient PROMPT… -- AGENT…. It prints what the agent says, and allows everything.
func acpClient() {
	if err := promptACP(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "acpclient:", err)
		os.Exit(1)
	}
}

func promptACP(args []string) error {
	prompts, agent := args, []string(nil)
	for i, a := range args {
		if a == "--" {
			prompts, agent = args[:i], args[i+1:]
			break
		}
	}
	cmd := exec.Command(agent[0], agent[1:]...)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		return err
	}
	p := &acpPeer{in: bufio.NewScanner(out), out: in}
	hear := func(m *acpMessage) { p.clientHears(m) }
	if _, err := p.ask("initialize", `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}`, hear); err != nil {
		return err
	}
	opened, err := p.ask("session/new", `{"cwd":"/w","mcpServers":[]}`, hear)
	for _, text := range prompts {
		if err != nil {
			return err
		}
		var done *acpMessage
		prompt := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, opened.text("sessionId"), text)
		if done, err = p.ask("session/prompt", prompt, hear); err == nil {
			fmt.Println("stopped:", done.text("stopReason"))
		}
	}
	return errors.Join(err, in.Close(), cmd.Wait())
}

// clientHears does what an agent asks, and prints what it tells. One that says that it waits is cancelled.
func (p *acpPeer) clientHears(m *acpMessage) {
	switch m.Method {
	case "session/update":
		said := m.text("update", "content", "text")
		if fmt.Println("agent:", said); strings.HasSuffix(said, " wait") {
			p.tell("session/cancel", fmt.Sprintf(`{"sessionId":%q}`, m.text("sessionId")))
		}
	case "fs/read_text_file":
		b, _ := os.ReadFile(m.text("path"))
		text, _ := json.Marshal(string(b))
		p.answer(m, `{"content":`+string(text)+`}`)
	case "session/request_permission":
		p.answer(m, `{"outcome":{"outcome":"selected","optionId":"yes"}}`)
	}
}
