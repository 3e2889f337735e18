import base64, hashlib, json, os, sys

def lower(v):  # keys count in either case
    if isinstance(v, dict):
        return {k.lower(): lower(x) for k, x in v.items()}
    return [lower(x) for x in v] if isinstance(v, list) else v

def read(directory):
    def load(name):
        with open(os.path.join(directory, name), encoding="utf-8") as f:
            return [lower(json.loads(line)) for line in f.read().split("\n") if line.strip()]
    with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as f:
        manifest = lower(json.load(f))
    with open(os.path.join(directory, "output.raw"), "rb") as f:
        raw = f.read()
    assert manifest["version"] == 1 and manifest["id"] and not manifest.get("required_features")
    assert manifest["content_digest"]["sha256"].lower() == hashlib.sha256(raw).hexdigest(), "digest"
    assert manifest["timing"]["resolution_ms"] > 0 and manifest["terminal"]["emulator"]["name"]
    events = [(e["seq"], e["t_ms"], kind, e) for kind, name in (
        ("input", "input.jsonl"), ("output", "output.jsonl"), ("frame", "frames.jsonl"), ("service", "service-events.jsonl"))
        for e in load(name)]
    with open(os.path.join(directory, "final.json"), encoding="utf-8") as f:
        final = lower(json.load(f))
    assert final["duration_ms"] >= 0 and isinstance((final.get("exit") or {}).get("err"), (dict, str, type(None))), "final"
    lower(json.load(open(os.path.join(directory, "scrub-report.json"), encoding="utf-8")))
    events = sorted(events, key=lambda e: e[0]) + [(final["seq"], final["t_ms"], "final", final)]
    end, before = 0, 0
    for n, (seq, ms, kind, e) in enumerate(events, 1):
        assert seq == n and ms >= before, "order"
        before = ms
        if kind == "output":
            chunk = raw[e["offset"]:e["offset"] + e["length"]]
            assert e["offset"] == end and len(chunk) == e["length"], "range"
            assert hashlib.sha256(chunk).hexdigest() == e.get("sha256", hashlib.sha256(chunk).hexdigest()), "chunk"
            end += len(chunk)
            e["data"] = chunk
        if kind == "input" and "bytes" in e:
            e["data"] = base64.b64decode(e["bytes"], validate=True)
    assert end == len(raw), "output without chunks"
    return manifest, events

for seq, ms, kind, e in read(sys.argv[1])[1]:
    print(seq, ms, kind)
