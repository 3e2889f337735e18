package tape

import (
	"net/url"
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
