#!/usr/bin/env bash
# Holds the screen model (internal/vt) beside @xterm/headless in one run: the shared conformance cases, the shared recordings, and
# the speed on four kinds of output.
#   bash integration/screen/run.sh           16 MiB of each kind, the median of five runs
#   bash integration/screen/run.sh --short   one run
# Needs Go and Node 20 or newer with npm. The npm packages come from npm/package-lock.json into a temporary folder.
# TAPEDECK_SCREEN_NODE names a folder that has them already.
set -euo pipefail
cd "$(dirname "$0")"

if [ -z "${TAPEDECK_SCREEN_NODE:-}" ]; then
  TAPEDECK_SCREEN_NODE=$(mktemp -d)
  trap 'rm -rf "$TAPEDECK_SCREEN_NODE"' EXIT
  cp npm/package.json npm/package-lock.json npm/.npmrc "$TAPEDECK_SCREEN_NODE/"
  (cd "$TAPEDECK_SCREEN_NODE" && npm ci --ignore-scripts --no-audit --no-fund)
fi
export TAPEDECK_SCREEN_NODE TAPEDECK_LONG=1
[ "${1:-}" != --short ] || TAPEDECK_LONG=
(cd ../.. && go test -count=1 -v -tags screen -run '^(TestCases|TestRecordings|TestXterm.*)$' ./internal/vt)
