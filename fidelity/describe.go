package fidelity

import (
	"fmt"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// describe names a record for a person.
func describe(k tape.Kind) string {
	name := k.Name()
	switch k := k.(type) {
	case *tape.ClockRead:
		return fmt.Sprintf("%s %s %d ms", name, k.Source, k.ValueMS)
	case *tape.ClockSleep:
		return fmt.Sprintf("%s %d ms", name, k.DurationMS)
	case *tape.LLMCall:
		if k.Method == "" && k.URL == "" { // another producer's
			return name + " request " + k.RequestDigest.Short()
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", name, k.Method, k.URL, k.Model))
	case *tape.HTTPExchange:
		return fmt.Sprintf("%s %s %s", name, k.Method, k.URL)
	case *tape.ProcessSpawn:
		return name + " " + visible.Command(append([]string{k.Program}, k.Args...))
	case *tape.MCPJSONRPC:
		return spaced(name, k.Server, k.Method, subjectOfCall(k))
	case *tape.MCPOpen:
		return spaced(name, k.Server)
	case *tape.MCPText:
		return spaced(name, k.Server, k.From)
	case *tape.MCPClose:
		return spaced(name, k.Server)
	case *tape.WSOpen:
		return name + " " + k.URL
	case *tape.WSMessage:
		return spaced(name, k.Direction, typeOfMessage(k))
	case *tape.WSClose:
		return fmt.Sprintf("%s %d", name, k.Code)
	case *tape.TLSRefused:
		return fmt.Sprintf("%s %s port %d", name, k.Host, k.Port)
	case *tape.NetRefused:
		if strings.HasPrefix(k.Addr, "/") {
			return name + " " + k.Addr
		}
		return fmt.Sprintf("%s %s port %d", name, k.Addr, k.Port)
	case *tape.NameLookup:
		return fmt.Sprintf("%s %s %s", name, k.Host, k.Type)
	case *tape.DirList:
		return name + " " + k.Path
	case *tape.EnvRead:
		return name + " " + k.VarName
	case *tape.FileStat:
		return name + " " + k.Path
	case *tape.PolicyVerdict:
		return name + " " + k.Tool
	}
	if f := tape.FileOf(k); f != nil {
		return name + " " + shownPath(f)
	}
	return name
}

// shownPath is a path with what stands there, where that is no file.
func shownPath(f *tape.File) string {
	switch {
	case !f.IsPlace():
		return f.Path
	case strings.HasPrefix(f.Mode, "04"):
		return f.Path + "/"
	}
	return f.Path + " (FIFO)"
}

// likely is a weaker identity: a record that stands alone on one side may have become one of the same likely identity that
// stands alone in the same place on the other.
func likely(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.HTTPExchange:
		url, _, _ := strings.Cut(k.URL, "?")
		return k.Name() + " " + k.Method + " " + url
	case *tape.ProcessSpawn:
		return k.Name() + " " + path.Base(k.Program)
	case *tape.MCPJSONRPC:
		return k.Name() + " " + fromOf(k) + " " + k.Method
	case *tape.MCPText:
		return k.Name() + " " + k.From
	case *tape.WSMessage:
		return k.Name() + " " + k.Direction
	case *tape.FileRead, *tape.FileWrite, *tape.FileDelete, *tape.DirList, *tape.EnvRead, *tape.FileStat:
		return describe(k)
	}
	return k.Name()
}

// likelyCall is likely for calls of tool servers: of the same tool. What is no such call has a likely identity of its own kind.
func likelyCall(k tape.Kind) string {
	call, ok := k.(*tape.MCPJSONRPC)
	if !ok {
		return likely(k)
	}
	return likely(k) + " " + subjectOfCall(call)
}

// likelyFile pairs a write with a delete of the same path, so that they read as one divergence.
func likelyFile(k tape.Kind) string {
	if _, read := k.(*tape.FileRead); read {
		return "read " + tape.FileOf(k).Path
	}
	return "change " + tape.FileOf(k).Path
}

// subjectOf says what a divergence of a record is about, where its message does not say so by itself; "" elsewhere.
func subjectOf(k tape.Kind) string {
	if ex := tape.ExchangeOf(k); ex != nil {
		return strings.TrimSpace(ex.Method + " " + ex.URL)
	}
	if f := tape.FileOf(k); f != nil {
		return visible.Line(f.Path)
	}
	switch k := k.(type) {
	case *tape.ProcessSpawn:
		return shortened(shownCommand(k))
	case *tape.MCPJSONRPC:
		return spaced(k.Server, k.Method, subjectOfCall(k))
	case *tape.MCPOpen, *tape.MCPText, *tape.MCPClose:
		return *tape.ServerOf(k)
	case *tape.EnvRead:
		return k.VarName
	case *tape.DirList:
		return visible.Line(k.Path)
	case *tape.FileStat:
		return visible.Line(k.Path)
	}
	return ""
}

// spaced puts what is not empty behind each other.
func spaced(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p != "" && b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p)
	}
	return b.String()
}

// subjectOfCall names the tool, prompt or resource of a call whose request stands in its record; "" elsewhere.
func subjectOfCall(k *tape.MCPJSONRPC) string {
	if !inRecord(k.Request) {
		return ""
	}
	return shortened(mcptext.Subject(k.Method, []byte(k.Request.Text)))
}

// typeOfMessage is the "type" of a message that is JSON and stands in its record; "" elsewhere.
func typeOfMessage(k *tape.WSMessage) string {
	if !inRecord(k.Payload) {
		return ""
	}
	return shortened(mcptext.Member([]byte(k.Payload.Text), "type"))
}

// shownCommand is commandOf as people read it: arguments that need it are quoted.
func shownCommand(p *tape.ProcessSpawn) string {
	return visible.Command(append([]string{path.Base(p.Program)}, p.Args...))
}

// commandOf is what a process ran: the name of its program and its arguments, for the name of its lane.
func commandOf(p *tape.ProcessSpawn) string {
	return strings.Join(append([]string{path.Base(p.Program)}, p.Args...), " ")
}

// shortened cuts the name of a process to maxLaneName bytes.
func shortened(name string) string {
	if len(name) <= maxLaneName {
		return name
	}
	return name[:bodies.CutAt(name, maxLaneName)] + "…"
}

// maxLaneName bounds the name of a process's lane, in bytes.
const maxLaneName = 100

// nounOf names the bytes behind a category.
func nounOf(c Category) string {
	switch c {
	case LLMRequestDigest, LLMRequestHash, LLMParamsDigest, HTTPRequestDigest, HTTPRequestHash:
		return "the request"
	case LLMResponseHash, HTTPResponseHash:
		return "the answer"
	case ProcessStdoutHash:
		return "stdout"
	case ProcessStderrHash:
		return "stderr"
	case FileReadHash, FileReadContent, FileWriteHash, FileWriteContent:
		return "the file"
	case MCPRequestDigest, MCPRequestHash:
		return "the MCP request"
	case MCPResponseDigest, MCPResponseHash:
		return "the MCP answer"
	case WSMessageHash:
		return "the message"
	case DirListNames:
		return "the names in the directory"
	case EnvReadValue:
		return "the variable"
	}
	return strings.ReplaceAll(string(c), "_", " ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
