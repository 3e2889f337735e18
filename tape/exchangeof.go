package tape

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ExchangeOf returns the exchange that a kind holds, which may be changed in place; nil for a kind that holds none.
func ExchangeOf(k Kind) *Exchange {
	switch k := k.(type) {
	case *LLMCall:
		return &k.Exchange
	case *HTTPExchange:
		return &k.Exchange
	}
	return nil
}

// FileOf returns the file that a kind is about (file_read, file_write, file_delete), which may be changed in place; nil for a kind that
// is about none.
func FileOf(k Kind) *File {
	if r, ok := k.(*FileRead); ok {
		return &r.File
	}
	return ChangedFile(k)
}

// ChangedFile is FileOf of the kinds that change a file: file_write and file_delete.
func ChangedFile(k Kind) *File {
	switch k := k.(type) {
	case *FileWrite:
		return &k.File
	case *FileDelete:
		return &k.File
	}
	return nil
}

// ServerOf returns the name of the MCP server that a kind belongs to, which may be changed in place; nil for a kind that is no mcp_*.
func ServerOf(k Kind) *string {
	switch k := k.(type) {
	case *MCPOpen:
		return &k.Server
	case *MCPJSONRPC:
		return &k.Server
	case *MCPText:
		return &k.Server
	case *MCPClose:
		return &k.Server
	}
	return nil
}

// HostOf returns the host of a URL as lanes name it: in lower case, with its port where the URL names one; "" for
// text that names none.
func HostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// Errors of an Exchange that say what the program did. Whoever compares two tapes must know them.
const (
	// Cancelled is the Error of an exchange that the program itself ended before its answer did.
	Cancelled = "the program ended the request"
	// HeldOn is the Error of a replayed exchange that was recorded as Cancelled and that the program, for all the time it was
	// given, did not end.
	HeldOn = "the program did not end the request, as it had while recording"
)

// TelemetryLane begins the lanes of requests that report what a program measured; the host follows. They never gate.
const TelemetryLane = "telemetry:"

// IsTelemetry reports whether x stands in such a lane.
func (x *Exchange) IsTelemetry() bool { return strings.HasPrefix(x.Lane, TelemetryLane) }

// UpgradeRefused reports whether x is a request for another protocol, as a WebSocket begins, that the recorder did not carry:
// it answered 426 by itself. No upstream is asked for one, so nobody else answered so.
func (x *Exchange) UpgradeRefused() bool {
	return x.Status == http.StatusUpgradeRequired && slices.ContainsFunc(x.RequestHeaders, func(f HeaderField) bool {
		return strings.EqualFold(f.Name, "Upgrade")
	})
}
