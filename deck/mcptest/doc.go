// Package mcptest holds an MCP server against recorded clients' calls: the server that runs now is told what the recorded one was told, and
// what it answers is compared.
//
// Goals: who changes a server sees which answers, tools and schemas are others now, by the calls that agents really make. Not goals: judging
// whether a difference is meant; HTTP+SSE, and what comes on a stream of GET.
//
// A conversation is played with a process, or over Streamable HTTP with a session, of its own: each message of the client as it was recorded,
// with its id, in recorded order, a request after the answer to the one before. What the server asks (sampling, roots, elicitation) gets what
// the recorded client answered to the same question, else an error. Placeholders become the secrets of the caller's environment, where it has
// them; over HTTP those of recorded headers too, and a header whose secret is not there is left out.
//
// Compared is what replays compare (package mcp, "What is compared"): results and errors as canonical JSON, secrets and volatile facts aside.
// The name and version that a server gives itself may be others. Of tools/list and its kin each entry is compared with that of the same name,
// whatever the order. Notifications, logs and stderr are not compared, and neither is a request that got no answer when it was recorded.
package mcptest
