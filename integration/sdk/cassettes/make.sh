#!/usr/bin/env bash
# Makes the fixtures of httptape/foreign/testdata again, each by the real program, as far as it is here:
#   bash integration/sdk/cassettes/make.sh
# vcrpy (python3), VCR and webmock (ruby), mitmdump, and Chromium with playwright-core, which PLAYWRIGHT_CORE names.
set -uo pipefail
cd "$(dirname "$0")/make"
out=$(realpath ../../../../httptape/foreign/testdata) port=${PORT:-8765}
base=http://127.0.0.1:$port
python3 serve.py "$port" &
server=$!
trap 'kill $server' EXIT
until curl -s -o /dev/null "$base/"; do sleep 0.1; done
tried() { echo "== $1"; shift; "$@" || echo "   left out"; }
tried vcrpy sh -c 'python3 vcrpy.py "$1" "$2/vcrpy.yaml.new" && mv "$2/vcrpy.yaml.new" "$2/vcrpy.yaml"' - "$base" "$out"
tried VCR ruby vcr.rb "$base" "$out" vcr-ruby yaml
tried 'VCR, JSON' ruby vcr.rb "$base" "$out" vcr-ruby-exact json
tried mitmproxy bash mitmproxy.sh "$base" "$out/mitmproxy.har"
tried Playwright node playwright.mjs "${PLAYWRIGHT_CORE:-playwright-core}" "${CHROMIUM:-/usr/bin/chromium}" "$base" "$out"
