#!/usr/bin/env bash
# Installs the agents of integration/agents, at the versions of its lock file, below a directory:
#   integration/install-agents.sh DIR && TAPEDECK_AGENTS=DIR/node_modules go test -tags agents ./integration/agents
# Needs Node 20 or newer with npm. Install scripts do not run: none of the agents needs one, for those whose program is a package
# of its own for each kind of machine are run from there. qwen-code gets a Node 22 the same way.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 DIR" >&2
  exit 1
fi
source_dir="$(cd "$(dirname "$0")" && pwd)/agents/npm"

mkdir -p "$1"
cp "$source_dir/package.json" "$source_dir/package-lock.json" "$source_dir/.npmrc" "$1/"
cd "$1"
npm ci --ignore-scripts --no-audit --no-fund
