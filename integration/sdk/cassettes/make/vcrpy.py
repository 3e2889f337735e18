"""python3 vcrpy.py BASE OUT: needs vcrpy. The libraries that it would patch are kept from it: some are too new for it."""
import json, sys

for name in ("urllib3", "requests", "boto3", "botocore", "httplib2", "boto", "tornado", "aiohttp", "httpx"):
    sys.modules[name] = None

import urllib.error, urllib.request
import vcr

base, out = sys.argv[1:]

def ask(path, data=None, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(base + path, data=data, headers=headers)).read()
    except urllib.error.HTTPError as e:
        return e.read()

with vcr.use_cassette(out, record_mode="all"):
    ask("/json?api_key=Lk4nB7vC2xZ9aa", Authorization="Bearer sk-verysecretverysecret123")
    ask("/zipped", **{"Accept-Encoding": "gzip"})
    for path in ("/binary", "/lines", "/empty", "/nowhere"):
        ask(path)
    ask("/echo", json.dumps({"name": "café"}).encode(), **{"Content-Type": "application/json"})
    ask("/echo", b"\xff\xfe\x00", **{"Content-Type": "application/octet-stream"})
    ask("/echo", b"a=1+2&b=x")
