#!/usr/bin/env bash
# bash mitmproxy.sh BASE OUT: needs mitmdump and curl; HAR_DUMP names har_dump.py of mitmproxy's examples (before 10.1).
set -euo pipefail
base=$1 out=$2 port=${MITM_PORT:-8766}
mitmdump -q -p "$port" -s "${HAR_DUMP:-/usr/share/doc/mitmproxy/examples/contrib/har_dump.py}" --set hardump="$out" &
proxy=$!
trap 'kill -INT $proxy; wait $proxy || true' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
ask() { curl -s -o /dev/null -x "http://127.0.0.1:$port" --noproxy '' "$@"; }
ask -H 'Authorization: Bearer sk-verysecretverysecret123' "$base/json?api_key=Lk4nB7vC2xZ9aa"
ask -H 'Accept-Encoding: gzip' "$base/zipped"
for path in binary lines empty nowhere; do ask "$base/$path"; done
ask -H 'Content-Type: application/json' -d '{"name":"café"}' "$base/echo"
printf '\377\376\000' | ask -H 'Content-Type: application/octet-stream' --data-binary @- "$base/echo"
ask -d 'a=1+2&b=x' "$base/echo"
