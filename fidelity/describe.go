package fidelity

import (
	"fmt"
	"hash/maphash"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An about says what a record is about, for a person.
type about struct {
	shown   string        // behind the name of its kind
	subject string        // where a message does not say so by itself
	body    *tape.Payload // what it holds
	noun    string        // body, where others may follow from it
}

// describe names a record for a person.
func describe(k tape.Kind) string { return spaced(k.Name(), aboutOf(k).shown) }

// subjectOf says what a divergence of a record is about, where its message does not say so by itself; "" elsewhere.
func subjectOf(k tape.Kind) string { return aboutOf(k).subject }

func aboutOf(k tape.Kind) about {
	if ex := tape.ExchangeOf(k); ex != nil {
		return about{exchangeShown(k, ex), strings.TrimSpace(ex.Method + " " + ex.URL), ex.RequestPayload, "the request"}
	}
	switch k := k.(type) {
	case *tape.ClockRead:
		return about{shown: fmt.Sprintf("%s %d ms", k.Source, k.ValueMS)}
	case *tape.ClockSleep:
		return about{shown: fmt.Sprintf("%d ms", k.DurationMS)}
	case *tape.FileRead:
		return about{shownPath(&k.File), visible.Line(k.Path), k.Content, "the file"}
	case *tape.FileWrite:
		return about{shownPath(&k.File), visible.Line(k.Path), k.Content, "the file"}
	case *tape.FileDelete:
		return about{shown: shownPath(&k.File), subject: visible.Line(k.Path)}
	case *tape.ProcessSpawn:
		return about{shown: visible.Command(append([]string{k.Program}, k.Args...)), subject: shortened(shownCommand(k))}
	case *tape.WSOpen:
		return about{shown: k.URL}
	case *tape.WSMessage:
		return about{shown: spaced(k.Direction, typeOfMessage(k)), body: k.Payload}
	case *tape.WSClose:
		return about{shown: show(k.Code)}
	case *tape.TLSRefused:
		return about{shown: fmt.Sprintf("%s port %d", k.Host, k.Port)}
	case *tape.NetRefused:
		if isSocket(k) {
			return about{shown: k.Addr}
		}
		return about{shown: fmt.Sprintf("%s port %d", k.Addr, k.Port)}
	case *tape.NameLookup:
		return about{shown: k.Host + " " + k.Type}
	case *tape.DirList:
		return about{k.Path, visible.Line(k.Path), k.Names, "the names in the directory"}
	case *tape.EnvRead:
		return about{k.VarName, k.VarName, k.Value, "the variable"}
	case *tape.FileStat:
		return about{shown: k.Path, subject: visible.Line(k.Path)}
	case *tape.PolicyVerdict:
		return about{shown: k.Tool}
	}
	return aboutServer(k)
}

// aboutServer is aboutOf for what passes between an agent and its tool servers.
func aboutServer(k tape.Kind) about {
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		called := spaced(k.Server, k.Method, subjectOfCall(k))
		return about{shown: called, subject: called, body: k.Request}
	case *tape.MCPText:
		return about{shown: spaced(k.Server, k.From), subject: k.Server, body: k.Payload}
	case *tape.MCPOpen:
		return about{shown: k.Server, subject: k.Server}
	case *tape.MCPClose:
		return about{shown: k.Server, subject: k.Server}
	}
	return about{}
}

func exchangeShown(k tape.Kind, ex *tape.Exchange) string {
	model := ""
	if call, ok := k.(*tape.LLMCall); ok {
		model = call.Model
		if ex.Method == "" && ex.URL == "" { // another producer's
			return "request " + ex.RequestDigest.Short()
		}
	}
	return strings.TrimSpace(ex.Method + " " + ex.URL + " " + model)
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
func shortened(name string) string { return bodies.Cut(name, maxLaneName) }

// maxLaneName bounds the name of a process's lane, in bytes.
const maxLaneName = 100

// inRecord reports whether a payload's bytes stand in its record.
func inRecord(p *tape.Payload) bool { return p != nil && p.Inline }

// isSocket reports whether what was asked for is a Unix socket of the host's.
func isSocket(r *tape.NetRefused) bool { return strings.HasPrefix(r.Addr, "/") }

// seed makes hashes of values that one process compares.
var seed = maphash.MakeSeed()

// identity says which thing a record is about, so that two tapes can be aligned on it: a hash that holds within this process.
// Records of one identity may still differ in what came of it; every field is compared after they were paired.
func identity(d *differ, k tape.Kind) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	put(&h, k.Name())
	switch k := k.(type) {
	case *tape.ClockRead:
		put(&h, k.Source)
		put(&h, k.ValueMS)
	case *tape.ClockSleep:
		put(&h, k.DurationMS)
	case *tape.LLMCall:
		put(&h, k.Provider, k.Endpoint, k.Model)
		put(&h, k.ParamsDigest, k.RequestDigest)
	case *tape.HTTPExchange:
		put(&h, k.Method, d.masked(k.URL))
		put(&h, k.RequestDigest)
	case *tape.ProcessSpawn:
		put(&h, d.masked(k.Program))
		for _, a := range k.Args {
			put(&h, d.masked(a))
		}
	case *tape.MCPJSONRPC:
		identifyCall(d, &h, k)
	case *tape.MCPOpen, *tape.MCPClose: // one of each in a lane
	case *tape.MCPText:
		put(&h, k.From)
		identifyContent(d, &h, k.Payload)
	case *tape.WSMessage:
		put(&h, k.Direction)
		identifyContent(d, &h, k.Payload)
	case *tape.PolicyVerdict:
		put(&h, k.Tool)
		put(&h, k.ParamsDigest)
	case *tape.RandomRead:
		put(&h, k.Length)
	case *tape.Unknown:
		h.Write(k.JSON)
	default:
		if f := tape.FileOf(k); f != nil {
			put(&h, f.Path)
		} else {
			put(&h, describe(k))
		}
	}
	return h.Sum64()
}

// identifyCall hashes which message to a tool server a record is about: between lanes by what compares of it, whatever the
// server calls itself.
func identifyCall(d *differ, h *maphash.Hash, k *tape.MCPJSONRPC) {
	if !d.lanes {
		put(h, k.Server)
	}
	put(h, k.Method, fromOf(k))
	if d.lanes && !k.ParamsDigest.IsZero() {
		put(h, k.ParamsDigest)
	} else {
		put(h, k.RequestDigest)
	}
}

// identifyContent hashes what a message holds, masked where it stands in its record.
func identifyContent(d *differ, h *maphash.Hash, p *tape.Payload) {
	if d.lanes && inRecord(p) {
		put(h, d.masked(p.Text))
	} else {
		put(h, hashOf(p))
	}
}

// put hashes values, so that where one ends counts.
func put[T comparable](h *maphash.Hash, values ...T) {
	for _, v := range values {
		maphash.WriteComparable(h, v)
	}
}
