// Package agents records and replays real agents from npm against a scripted endpoint.
//
// Its test runs with the build tag agents, on the agents below $TAPEDECK_AGENTS, a node_modules folder that
// integration/install-npm.sh fills; the MCP servers that agents are given lie below $TAPEDECK_MCP likewise. integration/bench runs the same recipes. Agents try telemetry hosts, so none ever runs outside the jail.
package agents
