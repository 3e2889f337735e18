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
	ScreenCursorAt:     "the cursor stands elsewhere",
	ScreenSize:         "the terminal has another size",
	ScreenAlternate:    "another screen is shown",
	ScreenTitle:        "the terminal's title changed",
	WSMessageHash:      "the message changed",
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
	if f := fileOf(k); f != nil {
		return visible.Line(f.Path)
	}
	switch k := k.(type) {
	case *tape.ProcessSpawn:
		return shortened(shownCommand(k))
	case *tape.MCPJSONRPC:
		return k.Server + " " + k.Method
	case *tape.EnvRead:
		return k.VarName
	}
	return ""
}
