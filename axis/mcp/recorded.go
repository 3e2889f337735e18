package mcp

// A Recorded is a conversation that stands on a tape.
type Recorded struct {
	Server       string // as the tape names it: "NAME", "NAME#2"
	Conversation uint64
	Within       uint64 // the conversation of the server that held it as a client; 0 for the program's own
	Transport    string // "stdio" or "http"
	Program      string // of stdio, redacted
	Args         []string
	Cwd          string
	URL          string // of http, redacted
	Protocol     string
	Methods      map[string]int // how often the client asked for each
}

// The transports.
const (
	Stdio = "stdio"
	HTTP  = "http"
)
