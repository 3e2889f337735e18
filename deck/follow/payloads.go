package follow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A NamedPayload is a payload and what of its record it is, as in "request" or "stdout".
type NamedPayload struct {
	Name string
	*tape.Payload
}

// PayloadsOf lists the payloads of a record that are there.
func PayloadsOf(k tape.Kind) []NamedPayload {
	var all []NamedPayload
	switch k := k.(type) {
	case *tape.LLMCall:
		all = []NamedPayload{{"request", k.RequestPayload}, {"response", k.Response}}
	case *tape.HTTPExchange:
		all = []NamedPayload{{"request", k.RequestPayload}, {"response", k.Response}}
	case *tape.ProcessSpawn:
		all = []NamedPayload{{"stdin", k.Stdin}, {"stdout", k.Stdout}, {"stderr", k.Stderr}}
	case *tape.FileRead:
		all = []NamedPayload{{"content", k.Content}}
	case *tape.FileWrite:
		all = []NamedPayload{{"before", k.Before}, {"content", k.Content}}
	case *tape.FileDelete:
		all = []NamedPayload{{"before", k.Before}}
	case *tape.MCPJSONRPC:
		all = []NamedPayload{{"request", k.Request}, {"response", k.Response}}
	case *tape.MCPText:
		all = []NamedPayload{{"text", k.Payload}}
	case *tape.DirList:
		all = []NamedPayload{{"names", k.Names}}
	case *tape.EnvRead:
		all = []NamedPayload{{"value", k.Value}}
	case *tape.WSMessage:
		all = []NamedPayload{{"message", k.Payload}}
	default:
		for i, p := range tape.Payloads(k) {
			all = append(all, NamedPayload{fmt.Sprintf("payload %d", i+1), p})
		}
	}
	return slices.DeleteFunc(all, func(p NamedPayload) bool { return p.Payload == nil })
}

// encodingOf is the Content-Encoding of the payload name of k.
func encodingOf(k tape.Kind, name string) string {
	x := tape.ExchangeOf(k)
	if x == nil {
		return ""
	}
	headers := x.ResponseHeaders
	if name == "request" {
		headers = x.RequestHeaders
	}
	var all []string
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Content-Encoding") {
			all = append(all, h.Value)
		}
	}
	return strings.Join(all, ", ")
}

// Failed reports whether a record says that something went wrong.
func Failed(k tape.Kind) bool {
	if x := tape.ExchangeOf(k); x != nil {
		return x.Error != "" || x.Status >= 400 || x.Status == 0 && x.Method != "" || // without a method: another producer's
			grpcstatus.Of(k).Failed()
	}
	switch k := k.(type) {
	case *tape.NetRefused, *tape.TLSRefused:
		return true
	case *tape.ProcessSpawn:
		return k.ExitCode != 0 || k.Signal != ""
	case *tape.MCPJSONRPC:
		return mcpFailed(k)
	case *tape.MCPClose:
		return k.Error != "" || serverFailed(k)
	case *tape.WSOpen:
		return k.Status >= 400
	case *tape.WSClose:
		return k.Code > 1001 && k.Code != 1005 // RFC 6455, 7.4.1: normal, going away, none given
	}
	return false
}

// serverFailed reports whether a server ended by itself and not well. Clients end theirs by SIGTERM and SIGKILL.
func serverFailed(k *tape.MCPClose) bool {
	switch k.Signal {
	case "":
		return k.ExitCode != nil && *k.ExitCode != 0
	case "SIGTERM", "SIGKILL", "SIGINT", "SIGHUP", "SIGPIPE":
		return false
	}
	return true
}

// mcpFailed reports whether a request got no answer, or one that says that something failed: an error of JSON-RPC, or of a tool.
func mcpFailed(k *tape.MCPJSONRPC) bool {
	if k.Error != "" {
		return true
	}
	return k.Response != nil && k.Response.Inline && mcptext.Answer(k.Method, []byte(k.Response.Text), 1).Failed
}
