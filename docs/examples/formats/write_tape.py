import json, os, sys, time
from b3 import b3

path, start, seq = sys.argv[1], time.monotonic(), 0
out = open(path, "w", encoding="utf-8", newline="\n")

def line(v):
    out.write(json.dumps(v, ensure_ascii=False, separators=(",", ":")) + "\n")
    out.flush()

def payload(data):
    if len(data) <= 4096:
        try:
            return {"content_hash": b3(data), "text": data.decode("utf-8")}
        except UnicodeDecodeError:
            pass
    os.makedirs(path + ".cas", exist_ok=True)
    blob = os.path.join(path + ".cas", b3(data))
    with open(path + ".cas/.tmp-" + str(os.getpid()), "wb") as f:
        f.write(data)
    os.replace(f.name, blob)  # whole or not at all, and before the record that names it
    return {"content_hash": b3(data), "len_bytes": len(data)}

def record(kind, **keys):
    global seq
    ms = int((time.monotonic() - start) * 1000)
    line({"type": "record", "seq": seq, "phase": "user_script", "virtual_time_ms": int(time.time() * 1000),
          "monotonic_ms": ms, "kind": {"kind": kind, **keys}})
    seq += 1

line({"type": "header", "version": 1, "harn_version": "example 1", "started_at_unix_ms": None,
      "script_path": sys.argv[0], "argv": sys.argv[2:]})
asked = json.dumps({"messages": [{"role": "user", "content": sys.argv[2]}]}, sort_keys=True, ensure_ascii=False,
                   separators=(",", ":")).encode()
record("llm_call", request_digest=b3(asked), response=payload('{"text":"schön"}'.encode()))
record("file_write", path="hello.txt", content_hash=b3(b"hello\n"), len_bytes=6)
record("process_spawn", program="agent", args=sys.argv[2:], cwd=None, exit_code=0, duration_ms=12,
       stdout_payload=payload(b"line\n" * 1000), stderr_payload=payload(b"\xff"))
