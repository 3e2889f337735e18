// Package jsonrpc is one peer of a JSON-RPC 2.0 conversation that calls and is called.
package jsonrpc
