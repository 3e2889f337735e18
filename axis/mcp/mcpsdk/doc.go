// Package mcpsdk puts package mcp behind the Transport of the official Go SDK: one that records what passes, and one that answers
// from a tape.
package mcpsdk

import _ "github.com/modelcontextprotocol/go-sdk/mcp" // the SDK whose Transport this is
