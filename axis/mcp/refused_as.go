package mcp

// RefusedAs begins the error on the tape of a request that a replay refused.
const RefusedAs = refusedAs
