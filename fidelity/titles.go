package fidelity

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// titles say in people's words what a category is about, where its code does not.
var titles = map[Category]string{
	LLMProvider:        "the provider changed",
	LLMEndpoint:        "the endpoint changed",
	LLMModel:           "the model changed",
	LLMParamsDigest:    "the parameters of the model call changed",
	LLMRequestDigest:   "the request to the model changed",
	LLMRequestHash:     "the bytes of the request to the model changed",
	LLMResponseHash:    "the model's answer changed",
	LLMStatus:          "the status of the model's answer changed",
	HTTPRequestDigest:  "the request changed",
	HTTPRequestHash:    "the bytes of the request changed",
	HTTPResponseHash:   "the answer changed",
	HTTPStatus:         "the status of the answer changed",
	HTTPURL:            "the URL changed",
	HTTPMethod:         "the method changed",
	FileReadHash:       "another content was read",
	FileReadContent:    "another content was read",
	FileWriteHash:      "another content was written",
	FileWriteContent:   "another content was written",
	FileWriteMode:      "the file's mode changed",
	MCPOrder:           "calls came in another order",
	ProcessOrder:       "processes came in another order",
	HTTPOrder:          "requests came in another order",
	FileWriteAttrs:     "the file's extended attributes changed",
	FileReadBefore:     "what stood there before changed",
	FileWriteBefore:    "what stood there before changed",
	FileDeleteBefore:   "what stood there before changed",
	FileReadPath:       "another file was read",
	FileWritePath:      "another file was written",
	FileDeletePath:     "another file was deleted",
	ProcessProgram:     "another program ran",
	ProcessArgs:        "the arguments changed",
	ProcessCwd:         "the working directory changed",
	ProcessExitCode:    "the exit code changed",
	ProcessSignal:      "the signal that ended it changed",
	ProcessStdoutHash:  "stdout changed",
	ProcessStderrHash:  "stderr changed",
	ProcessStdinHash:   "stdin changed",
	MCPMethod:          "the MCP method changed",
	MCPRequestDigest:   "the MCP request changed",
	MCPResponseDigest:  "the MCP answer changed",
	MCPRequestHash:     "the MCP request changed",
	MCPResponseHash:    "the MCP answer changed",
	KindMismatch:       "something else happened",
	ClockReadValue:     "the clock's value changed",
	ClockSleepDuration: "the length of a sleep changed",
	EnvReadName:        "another variable was read",
	EnvReadValue:       "the variable's value changed",
	DirListPath:        "another directory was listed",
	DirListNames:       "the names in the directory changed",
	FileStatPath:       "another path was looked at",
	FileStatType:       "what stands at the path changed",
	FileStatLen:        "the length of the file changed",
	FileStatMode:       "the file's mode changed",
	ScreenCursorAt:     "the cursor stands elsewhere",
	ScreenSize:         "the terminal has another size",
	ScreenAlternate:    "another screen is shown",
	ScreenTitle:        "the terminal's title changed",
	WSMessageHash:      "the message changed",
	WSMessageDirection: "the other side sent the message",
	WSCloseCode:        "the code that ended the conversation changed",
	WSCloseReason:      "the reason that ended the conversation changed",
	MCPServer:          "the server calls itself otherwise",
	MCPOpenServer:      "the server calls itself otherwise",
	MCPOpenProgram:     "the server is another program",
	MCPOpenArgs:        "the server was started with other arguments",
	MCPOpenEnv:         "the server was given other variables",
	MCPOpenURL:         "the server has another URL",
	MCPOpenProtocol:    "another version of the protocol was agreed on",
	MCPError:           "why there is no answer changed",
	MCPTextHash:        "what came beside the messages changed",
	MCPCloseExitCode:   "the server's exit code changed",
	MCPCloseSignal:     "the signal that ended the server changed",
	MCPCloseError:      "how the conversation ended changed",
	MCPCloseBy:         "who ended the conversation changed",
}

// titleOf is what a category reads as in a message.
func titleOf(c Category) string {
	if t, ok := titles[c]; ok {
		return t
	}
	return strings.ReplaceAll(string(c), "_", " ")
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
