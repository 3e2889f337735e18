// Package mcp records programs that speak to MCP servers of others, takes the servers away, and replays.
//
// The servers (everything, filesystem, memory) and clients (the TypeScript SDK, the inspector) come from npm, at the versions of
// npm/package-lock.json; TAPEDECK_MCP names the node_modules folder they lie in, integration/install-npm.sh fills one. Behind the
// build tag mcp:
//
//	integration/install-npm.sh integration/mcp DIR && TAPEDECK_MCP=DIR/node_modules go test -tags mcp ./integration/mcp
package mcp
