package fidelity

import (
	"fmt"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// describe names a record for a person.
func describe(k tape.Kind) string {
	name := k.Name()
	switch k := k.(type) {
	case *tape.ClockRead:
		return name + " " + k.Source
	case *tape.LLMCall:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", name, k.Method, k.URL, k.Model))
	case *tape.HTTPExchange:
		return fmt.Sprintf("%s %s %s", name, k.Method, k.URL)
	case *tape.ProcessSpawn:
		return name + " " + strings.Join(append([]string{k.Program}, k.Args...), " ")
	case *tape.MCPJSONRPC:
		return name + " " + k.Server + " " + k.Method
	case *tape.WSOpen:
		return name + " " + k.URL
	case *tape.TLSRefused:
		return fmt.Sprintf("%s %s port %d", name, k.Host, k.Port)
	case *tape.NetRefused:
		return fmt.Sprintf("%s %s port %d", name, k.Addr, k.Port)
	case *tape.DirList:
		return name + " " + k.Path
	case *tape.EnvRead:
		return name + " " + k.VarName
	case *tape.PolicyVerdict:
		return name + " " + k.Tool
	}
	if f := fileOf(k); f != nil {
		return name + " " + f.Path
	}
	return name
}

// fileOf returns the file of the three kinds that hold one, else nil.
func fileOf(k tape.Kind) *tape.File {
	switch k := k.(type) {
	case *tape.FileRead:
		return &k.File
	case *tape.FileWrite:
		return &k.File
	case *tape.FileDelete:
		return &k.File
	}
	return nil
}

// identity says which thing a record is about, so that two tapes can be aligned on it. Records of one identity may still
// differ in what came of it.
func (d *differ) identity(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.ClockRead:
		return fmt.Sprint(k.Name(), k.Source, k.ValueMS)
	case *tape.ClockSleep:
		return fmt.Sprint(k.Name(), k.DurationMS)
	case *tape.LLMCall:
		return fmt.Sprintf("%s %q %q %q %s %s", k.Name(), k.Provider, k.Endpoint, k.Model, k.ParamsDigest, k.RequestDigest)
	case *tape.HTTPExchange:
		return fmt.Sprintf("%s %q %q %s", k.Name(), k.Method, d.masked(k.URL), k.RequestDigest)
	case *tape.ProcessSpawn:
		return fmt.Sprintf("%s %q %q", k.Name(), d.masked(k.Program), d.maskedAll(k.Args))
	case *tape.MCPJSONRPC:
		return fmt.Sprintf("%s %q %q %s", k.Name(), k.Server, k.Method, k.RequestDigest)
	case *tape.WSMessage:
		return fmt.Sprintf("%s %s %s", k.Name(), k.Direction, hashOf(k.Payload))
	case *tape.PolicyVerdict:
		return fmt.Sprintf("%s %q %s", k.Name(), k.Tool, k.ParamsDigest)
	case *tape.RandomRead:
		return fmt.Sprint(k.Name(), k.Length)
	case *tape.Unknown:
		return "unknown " + string(k.JSON)
	}
	return describe(k)
}

func (d *differ) maskedAll(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = d.masked(a)
	}
	return out
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
		return k.Name() + " " + k.Server + " " + k.Method
	case *tape.WSMessage:
		return k.Name() + " " + k.Direction
	case *tape.FileRead, *tape.FileWrite, *tape.FileDelete, *tape.DirList, *tape.EnvRead:
		return describe(k)
	}
	return k.Name()
}
