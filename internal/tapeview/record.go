package tapeview

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Line says in one line what a record holds, with the way on where there is one.
func Line(k tape.Kind) string { return content(k) + wayOn(k) }

// Title says in one line what a record holds, and of a conversation what was said in it as far as it is known: turn is that of a call of a
// model, nil for none; store has the payloads.
func Title(k tape.Kind, turn *account.Turn, store cas.Store) string {
	if !isConversation(k) {
		return content(k)
	}
	return strings.Join(sayer{max: maxSaid, store: store, turn: turn}.record(k).lines, "  ")
}

// wayOn says how a program reaches what it did not reach; "" where nothing is to be said.
func wayOn(k tape.Kind) string {
	if u := follow.UnreachedBy(k); u != nil {
		return "; a server on this host is reached with record --upstream " + u.Upstream()
	}
	return ""
}

func content(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.ClockRead:
		return fmt.Sprintf("%s clock: %d ms", k.Source, k.ValueMS)
	case *tape.ClockSleep:
		return fmt.Sprintf("slept %d ms", k.DurationMS)
	case *tape.HTTPExchange:
		return k.Method + " " + k.URL + ": " + exchangeEnd(k)
	case *tape.FileRead:
		return fmt.Sprintf("read %s, %s", k.Path, Size(k.LenBytes))
	case *tape.FileWrite:
		if k.IsPlace() {
			return fmt.Sprintf("made %s, mode %s", k.Path, k.Mode)
		}
		return fmt.Sprintf("wrote %s, %s", k.Path, Size(k.LenBytes))
	case *tape.FileDelete:
		return "deleted " + k.Path
	case *tape.ProcessSpawn:
		return spawnSummary(k)
	case *tape.LLMCall, *tape.MCPJSONRPC, *tape.MCPOpen, *tape.MCPText, *tape.MCPClose, *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
		return strings.Join(sayer{max: maxSaid}.record(k).lines, "  ")
	case *tape.NameLookup:
		return fmt.Sprintf("looked up %s (%s): %s", k.Host, k.Type, k.Result)
	case *tape.NetRefused:
		if strings.HasPrefix(k.Addr, "/") {
			return k.Addr + ": " + k.Reason
		}
		return fmt.Sprintf("%s port %d: %s", k.Addr, k.Port, k.Reason)
	case *tape.TLSRefused:
		return fmt.Sprintf("%s port %d: %s", k.Host, k.Port, k.Reason)
	case *tape.DirList:
		return listSummary(k)
	case *tape.EnvRead:
		return envSummary(k)
	case *tape.FileStat:
		return statSummary(k)
	case *tape.RandomRead:
		return "drew " + Size(k.Length)
	case *tape.PolicyVerdict:
		return strings.TrimSpace(k.Tool + " " + k.ActionID + ": " + string(k.Verdict))
	case *tape.Unknown:
		return string(k.JSON)
	}
	return ""
}

// exchangeEnd says what came of the exchange that k holds, of a gRPC call that failed its own status too: that of HTTP is 200 then.
func exchangeEnd(k tape.Kind) string {
	s, x := "no answer", tape.ExchangeOf(k)
	if x.Status != 0 {
		s = strconv.Itoa(x.Status)
		if x.Response != nil {
			s += ", " + Size(x.Response.Len)
		}
		if n := len(x.Stream); n > 1 {
			s += fmt.Sprintf(" in %d chunks", n)
		}
	}
	if x.Error != "" {
		s += " (" + x.Error + ")"
	}
	if call := grpcstatus.Of(k); call.Failed() {
		s += ", " + call.String()
	}
	return s
}

func spawnSummary(k *tape.ProcessSpawn) string {
	end := fmt.Sprintf("exit %d", k.ExitCode)
	if k.Signal != "" {
		end = k.Signal
	}
	what := visible.Command(append([]string{k.Program}, k.Args...))
	if k.Program == "" && len(k.Args) == 0 {
		what = "a fork of its starter" // a subshell
	}
	return fmt.Sprintf("%s: %s after %s", what, end, Seconds(k.DurationMS))
}

func listSummary(k *tape.DirList) string {
	var names []string
	if k.Names == nil || !k.Names.Inline || json.Unmarshal([]byte(k.Names.Text), &names) != nil {
		return "listed " + k.Path
	}
	return fmt.Sprintf("listed %s: %s", k.Path, plural(len(names), "name", "names"))
}

// envSummary is content of a variable. A long value, and one that is no text, shows in --payloads.
func envSummary(k *tape.EnvRead) string {
	switch {
	case k.Value == nil:
		return k.VarName
	case k.Value.Inline && k.Value.Len <= maxSaid:
		return k.VarName + "=" + k.Value.Text
	}
	return fmt.Sprintf("%s, %s", k.VarName, Size(k.Value.Len))
}

func statSummary(k *tape.FileStat) string {
	switch k.Type {
	case "file":
		return fmt.Sprintf("looked at %s: a file, %s", k.Path, Size(k.LenBytes))
	case "none":
		return fmt.Sprintf("looked at %s: nothing is there", k.Path)
	}
	return fmt.Sprintf("looked at %s: %s", k.Path, k.Type)
}
