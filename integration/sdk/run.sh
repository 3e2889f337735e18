#!/usr/bin/env bash
# Records and replays the official SDKs, in Go and for Node:
#   bash integration/sdk/run.sh [flags of go test]
# Needs Go, Node 20 or newer with npm, and Linux with user namespaces. The npm packages come from node/package-lock.json
# into a temporary folder; their install scripts do not run, for none is needed. TAPEDECK_SDK_NODE names a folder that has
# them already.
set -euo pipefail
cd "$(dirname "$0")"

if [ -z "${TAPEDECK_SDK_NODE:-}" ]; then
  TAPEDECK_SDK_NODE=$(mktemp -d)
  trap 'rm -rf "$TAPEDECK_SDK_NODE"' EXIT
  chmod 755 "$TAPEDECK_SDK_NODE" # the unprivileged user reads them too
  cp node/package.json node/package-lock.json node/.npmrc "$TAPEDECK_SDK_NODE/"
  (cd "$TAPEDECK_SDK_NODE" && npm ci --ignore-scripts --no-audit --no-fund)
fi
export TAPEDECK_SDK_NODE
go test -count=1 "$@" ./...
