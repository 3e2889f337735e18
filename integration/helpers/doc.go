// Package helpers tries the helpers for other test runners, folder helpers, with the runners themselves: pytest, node:test and vitest
// collect a recording that holds and one that does not, without a jail and without tapedeck too.
//
// Its tests have the build tag helpers. They build the command, and need the pytest of /usr/bin/python3 (Debian's python3-pytest), Node 20 or
// newer, and vitest where TAPEDECK_HELPERS says (its node_modules; npm/package-lock.json names the version).
package helpers
