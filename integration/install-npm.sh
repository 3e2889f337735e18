#!/usr/bin/env bash
# Installs what one of the folders here takes from npm, at the versions of its lock file, below a directory:
#   integration/install-npm.sh integration/agents DIR
# Needs Node 20 or newer with npm. Install scripts do not run: nothing here needs one, for programs of which npm has a package for
# each kind of machine are run from there. Programs that want a newer Node get it the same way.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: $0 FOLDER DIR" >&2
  exit 1
fi
source_dir="$(cd "$1/npm" && pwd)"

mkdir -p "$2"
cp "$source_dir/package.json" "$source_dir/package-lock.json" "$source_dir/.npmrc" "$2/"
cd "$2"
npm ci --ignore-scripts --no-audit --no-fund
