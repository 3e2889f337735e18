#!/usr/bin/env python3
"""Reads the tapes, pairs of tapes and stores of this corpus by README.md alone, and reproduces what a reader must make of them.

Only the standard library is needed. It has no BLAKE3, so that blobs and inline texts are not verified, which blob is whole
and which is damaged is not told, and nothing is put into a store; everything else is.
"""
import base64, binascii, glob, hashlib, json, os, re, shutil, socket, stat, sys, tempfile

# What a value is, and whether its key must be there: BASE must, OWN may be absent or null and is kept as it is, EITHER may
# be absent or null and is written.
TEXT, PAYLOAD, DIGEST, INT, UINT, HEADERS, CHUNKS, TEXTS, ANY, RAW, KIND, BASE, OWN, EITHER, HASH, WIDE, SOURCE, OTHERS = range(18)
FILE = [("content", PAYLOAD), ("before", PAYLOAD), ("content_digest", DIGEST), ("mode", TEXT), ("spawn_id", UINT)]
REQUEST = [("method", TEXT), ("url", TEXT), ("request_headers", HEADERS)]
STATUS = [("status", INT), ("response_headers", HEADERS)]
STREAM = [("stream", CHUNKS), ("lane", TEXT), ("arrival", UINT), ("error", TEXT)]
HASHED = [("path", TEXT), ("content_hash", HASH), ("len_bytes", WIDE)]
# The kinds: the keys that must be there, and those that recordings add.
KINDS = {
    "clock_read": ([("source", SOURCE), ("value_ms", INT)], []),
    "clock_sleep": ([("duration_ms", UINT)], []),
    "llm_call": ([("request_digest", HASH), ("response", PAYLOAD)],
                 [("provider", TEXT), ("endpoint", TEXT), ("model", TEXT), ("params_digest", DIGEST), ("usage", ANY)]
                 + REQUEST + [("request_payload", PAYLOAD)] + STATUS + STREAM + [("connection", UINT), ("opcode", TEXT)]),
    "http_exchange": ([], REQUEST + [("request_digest", DIGEST), ("request_payload", PAYLOAD)] + STATUS
                      + [("response", PAYLOAD)] + STREAM),
    "file_read": (HASHED, FILE), "file_write": (HASHED, FILE), "file_delete": ([("path", TEXT)], FILE),
    "process_spawn": ([("program", TEXT), ("args", TEXTS), ("cwd", TEXT), ("exit_code", INT), ("duration_ms", UINT),
                       ("stdout_payload", PAYLOAD), ("stderr_payload", PAYLOAD)],
                      [("spawn_id", UINT), ("parent_spawn_id", UINT), ("signal", TEXT), ("stdin_payload", PAYLOAD),
                       ("stdout_digest", DIGEST), ("stderr_digest", DIGEST)]),
    "mcp_json_rpc": ([("server", TEXT), ("method", TEXT), ("request_digest", HASH), ("response_digest", HASH),
                      ("latency_ms", WIDE), ("request_payload", PAYLOAD), ("response_payload", PAYLOAD)],
                     [("from", TEXT), ("conversation", UINT), ("transport", TEXT), ("arrival", UINT), ("answered", UINT),
                      ("params_digest", DIGEST), ("result_digest", DIGEST), ("exchange", UINT), ("answer_exchange", UINT),
                      ("error", TEXT)]),
    "mcp_open": ([], [("server", TEXT), ("conversation", UINT), ("transport", TEXT), ("program", TEXT), ("args", TEXTS),
                      ("cwd", TEXT), ("url", TEXT), ("protocol", TEXT)]),
    "mcp_text": ([], [("server", TEXT), ("conversation", UINT), ("from", TEXT), ("arrival", UINT), ("payload", PAYLOAD)]),
    "mcp_close": ([], [("server", TEXT), ("conversation", UINT), ("arrival", UINT), ("exit_code", INT), ("signal", TEXT),
                       ("error", TEXT), ("by", TEXT)]),
    "ws_open": ([], [("url", TEXT), ("lane", TEXT), ("arrival", UINT), ("request_headers", HEADERS),
                     ("response_headers", HEADERS), ("status", INT), ("connection", UINT)]),
    "ws_message": ([], [("connection", UINT), ("direction", TEXT), ("opcode", TEXT), ("payload", PAYLOAD)]),
    "ws_close": ([], [("connection", UINT), ("code", INT), ("reason", TEXT)]),
    "tls_refused": ([], [("host", TEXT), ("port", INT), ("reason", TEXT)]),
    "net_refused": ([], [("addr", TEXT), ("port", INT), ("reason", TEXT)]),
    "dir_list": ([], [("path", TEXT), ("names_digest", DIGEST), ("names", PAYLOAD)]),
    "env_read": ([], [("name", TEXT), ("value", PAYLOAD)]),
    "file_stat": ([], [("path", TEXT), ("type", TEXT), ("len_bytes", INT), ("mode", TEXT)]),
    "random_read": ([], [("length", INT), ("payload", PAYLOAD)]),
    "policy_verdict": ([], [("policy_set", TEXT), ("action_id", TEXT), ("tool", TEXT), ("params_digest", DIGEST),
                            ("params_payload", PAYLOAD), ("state", ANY), ("verdict", ANY)]),
}
HEADER = [("version", INT, BASE), ("harn_version", TEXT, BASE), ("started_at_unix_ms", INT, EITHER),
          ("script_path", TEXT, EITHER), ("argv", TEXTS, EITHER)]
RECORD = [("seq", UINT, BASE), ("phase", TEXT, EITHER), ("virtual_time_ms", INT, BASE), ("monotonic_ms", INT, BASE),
          ("kind", KIND, BASE), ("g", UINT, OWN), ("raw", RAW, OWN)]

sys.setrecursionlimit(5000)  # for what is nested 500 deep


class Refused(Exception):
    pass


class Number(str):
    """A number as it stood."""


def need(ok, code="malformed"):
    if not ok:
        raise Refused(code)


def parse(line):
    """JSON in UTF-8; an object is a list of pairs in a tuple, for keys may stand twice."""
    def constant(_):
        raise ValueError
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=tuple, parse_int=Number, parse_float=Number,
                          parse_constant=constant)
    except (ValueError, RecursionError):
        raise Refused("not-json")


def check(kind, v):
    """Refuses a value that is not of the kind, and returns its canonical text."""
    if kind in (TEXT, HASH):  # a hash of others may be any text
        need(type(v) is str)
    elif kind == SOURCE:
        need(v in ("wall", "monotonic"))
    elif kind in (INT, UINT, WIDE):
        need(type(v) is Number and not set(v) & set(".eE"))
        need((0 if kind == UINT else -1 << 63) <= int(v) < (1 << 63 if kind == INT else 1 << 64))
        return str(int(v))
    elif kind == DIGEST:
        need(type(v) is str and len(v) == 64 and not set(v) - set("0123456789abcdef"))
    elif kind == TEXTS:
        need(type(v) is list)
        return "[" + ",".join(check(TEXT, x) for x in v) + "]"
    elif kind == HEADERS:
        need(type(v) is list and all(type(h) is list and len(h) == 2 for h in v))
        return "[" + ",".join(check(TEXTS, h) for h in v) + "]"
    elif kind == CHUNKS:
        need(type(v) is list)
        keys = [("offset", INT, BASE), ("length", INT, BASE), ("t_ms", INT, BASE), ("g", UINT, OWN)]
        return "[" + ",".join(walk(x, keys) for x in v) + "]"
    elif kind in (PAYLOAD, OTHERS):  # one that others write may have any hash
        text = type(v) is tuple and "text" in dict(v)
        return walk(v, [("content_hash", HASH if kind == OTHERS else DIGEST, BASE),
                        ("text", TEXT, BASE) if text else ("len_bytes", UINT, BASE)])
    elif kind == RAW:
        need(type(v) is tuple)
        for _, x in v:
            need(type(x) is str)
            try:
                need(base64.b64encode(base64.b64decode(x, validate=True)).decode() == x)
            except binascii.Error:
                raise Refused("malformed")
        return "{" + ",".join(dump(k) + ":" + dump(x) for k, x in v) + "}"
    elif kind == KIND:
        need(type(v) is tuple and type(dict(v).get("kind")) is str)
        name = dict(reversed(v))["kind"]
        if name not in KINDS:
            return dump(v)
        base, own = KINDS[name]
        keys = [(k, OTHERS if t == PAYLOAD else t, EITHER if k == "cwd" else BASE) for k, t in base] + [(k, t, EITHER if k == "exit_code" else OWN) for k, t in own]
        return walk(v, [("kind", TEXT, BASE)] + keys)
    return dump(v)


def walk(v, keys):
    """The canonical text of an object: the keys that are known in their order, then the others as they came, then raw."""
    need(type(v) is tuple)
    known, out = {k for k, _, _ in keys}, []
    given = {k: x for k, x in v if k in known}
    need(len(given) == sum(k in known for k, _ in v))
    rest = [dump(k) + ":" + dump(x) for k, x in v if k not in known]
    for k, kind, how in keys:
        if k == "raw":
            out, rest = out + rest, []
        if k not in given and how == OWN:
            continue
        x = given.get(k)
        if x is None and (how != BASE or kind == ANY):
            x = {"phase": "user_script", "argv": []}.get(k) if how == EITHER else None
            out.append(dump(k) + ":" + dump(x))
            continue
        if k == "phase" and x != "runtime_finalize" and type(x) is str and type(x) is not Number:
            x = "user_script"
        out.append(dump(k) + ":" + check(kind, x))
    return "{" + ",".join(out + rest) + "}"


def dump(v):
    if type(v) is tuple:
        return "{" + ",".join(dump(k) + ":" + dump(x) for k, x in v) + "}"
    if type(v) is list:
        return "[" + ",".join(dump(x) for x in v) + "]"
    if type(v) is Number:
        return v
    text = json.dumps(v, ensure_ascii=False)
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)


def header(v):
    need(type(v) is tuple)
    need(dict(v).get("type") == "header", "no-header")
    version = dict(v).get("version")
    need(type(version) is not Number or set(version) & set(".eE") or int(version) <= 1, "version")
    line = walk(v, [("type", TEXT, BASE)] + HEADER)
    need(int(version) >= 0)
    return line


def record(v):
    need(type(v) is tuple)
    need(dict(v).get("type") != "header", "second-header")
    need(dict(v).get("type") == "record")
    return walk(v, [("type", TEXT, BASE)] + RECORD)


def load(tape):
    """Returns the outcome, its line, and the canonical lines of what came before it."""
    lines, out = tape.split(b"\n"), []
    for n, line in enumerate(lines, 1):
        if not line.strip(b" \t\r"):
            continue
        try:
            try:
                v = parse(line)
            except Refused:
                need(n < len(lines) or not out, "torn")
                raise
            out.append(record(v) if out else header(v))
        except Refused as why:
            return why.args[0], n, out
    return ("loads", 0, out) if out else ("empty", 1, out)


def verdict(case):
    head, _, tape = case.partition(b"\n\n")
    want = dict(line.split(": ", 1) for line in head.decode().split("\n"))
    code, line, out = load(tape)
    got = {"expect": code, "line": str(line), "records": str(max(len(out) - 1, 0))}
    if code in ("loads", "torn"):
        got["tolerant"] = "loads"
        got["canonical"] = want["canonical"] if want["canonical"] in forms(tape, out) else "of other bytes"
        seqs = [dict(parse(x.encode()))["seq"] for x in out[1:]]
        got["order"] = "" if seqs == [str(i) for i in range(len(seqs))] else "disordered"
        got["conversations"] = "" if sound(out) else "unsound"
        want.setdefault("order", "")
        want.setdefault("conversations", "")
    want.setdefault("tolerant", "loads" if code == "loads" else "")
    return [f"{k}: {got[k]}, want {want.get(k, '0')}" for k in got if got[k] != want.get(k, "0")]


def kind(line):
    return dict(dict(parse(line.encode()))["kind"])


def sound(out):
    """Whether every conversation of an MCP server begins once, before all that is said in it, and nothing comes behind its end."""
    begun, ended = set(), set()
    for k in map(kind, out[1:]):
        n = k.get("conversation") or "0"
        if k["kind"] == "mcp_open":
            if n == "0" or n in begun:
                return False
            begun.add(n)
        elif k["kind"] in ("mcp_text", "mcp_close") or k["kind"] == "mcp_json_rpc" and n != "0":
            if n not in begun - ended:
                return False
            if k["kind"] == "mcp_close":
                ended.add(n)
    return True


# What differs of an mcp_json_rpc, in the order in which it is told. The last counts in the exact modes alone.
MCP = [("server", "mcp_server"), ("method", "mcp_method"), ("request_digest", "mcp_request_digest"),
       ("response_digest", "mcp_response_digest"), ("request_payload", "mcp_request_hash"),
       ("response_payload", "mcp_response_hash"), ("latency_ms", "mcp_latency")]


def verdict_pair(case):
    """Compares the calls of two tapes, place by place; of nothing else do they differ."""
    head, _, body = case.partition(b"\n\n")
    want = dict(line.split(": ", 1) for line in head.decode().split("\n"))
    recorded, _, replay = body.partition(b"\n\n")
    tapes = [load(recorded + b"\n"), load(replay)]
    if [t[0] for t in tapes] != ["loads", "loads"] or len(tapes[0][2]) != len(tapes[1][2]):
        return ["two tapes of as many records are wanted"]
    differ = []
    for a, b in zip(*(map(kind, t[2][1:]) for t in tapes)):
        differ += [category for key, category in MCP if a["kind"] == "mcp_json_rpc" and a[key] != b[key]]
    inexact = [c for c in differ if c != "mcp_latency"]
    got = {"byte-identical": differ, "phase-aware": differ, "semantic": inexact, "outcome": []}
    return [f"{k}: {v}, want {want.get(k)}" for k, v in got.items() if (", ".join(v) or "none") != want.get(k)]


def forms(tape, out):
    """The digests of the canonical tape: of out, and of the tape itself where only what is kept verbatim may differ."""
    saved = "".join(x + "\n" for x in out)
    given = "".join(dump(parse(x)) + "\n" for x in tape.split(b"\n") if x.strip(b" \t\r")) if tape.endswith(b"\n") else ""
    return {hashlib.sha256(saved.encode()).hexdigest()} | ({hashlib.sha256(tape).hexdigest()} if given == saved else set())


def make(path, what, value):
    """Makes an entry of a store; False where this system or user cannot."""
    try:
        if what == "file":
            with open(path, "wb") as f:
                f.write(base64.b64decode(value, validate=True))
        elif what == "symlink":
            os.symlink(value, path)
        elif what == "dir":
            os.mkdir(path)
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "socket":  # by way of a short name: that of a blob is longer than a socket's may be
            with socket.socket(socket.AF_UNIX) as s:
                s.bind("s")
            os.rename("s", path)
        else:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        return True
    except (OSError, AttributeError):
        return False


def digest(name):
    return re.fullmatch("[0-9a-f]{64}", name) is not None


def look(path):
    """What reading the blob gives, as far as it can be told without its hash. No link is followed, nothing opened."""
    try:
        return {"whole", "damaged"} if stat.S_ISREG(os.lstat(path).st_mode) else {"not-regular"}
    except FileNotFoundError:
        return {"missing"}


def store(fields, d):
    """Returns what does not hold of a store that is made at d, or None where it cannot be made here."""
    made = all([make(os.path.join(d, name), *(rest + " ").split(" ")[:2])
                for k, v in fields if k == "entry" for name, rest in [v.split(" ", 1)]])
    if not made:
        return None
    listed, wrong = sorted(filter(digest, os.listdir(d))) if os.path.isdir(d) else [], []
    want = [v for k, v in fields if k == "list"]
    if listed != want:
        wrong.append(f"list: {listed}, want {want}")
    for k, v in fields:
        name, _, word = v.rpartition(" ")
        if k == "unlisted" and v in listed:
            wrong.append(f"unlisted: {v} is listed")
        if k == "get" and word not in look(os.path.join(d, name)):
            wrong.append(f"get: {name} is {look(os.path.join(d, name))}, want {word}")
        if k == "parse" and (word == "refused") == digest(name):
            wrong.append(f"parse: {name} {'is' if digest(name) else 'is no'} digest, want {word}")
    return wrong


def verdict_store(case):
    fields = [line.split(": ", 1) for line in case.partition(b"\n\n")[0].decode().split("\n")]
    here, d = os.getcwd(), tempfile.mkdtemp()
    try:
        os.chdir(d)
        if ["absent", "yes"] not in fields:
            os.mkdir("store")
        return store(fields, "store")
    finally:
        os.chdir(here)
        shutil.rmtree(d)


def main():
    here, wrong, skipped = os.path.dirname(os.path.abspath(__file__)), 0, 0
    paths = {kind: sorted(glob.glob(os.path.join(here, kind, "*.case"))) for kind in ("tape", "pairs", "store")}
    reads = {"tape": verdict, "pairs": verdict_pair, "store": verdict_store}
    for path, read in [(p, reads[kind]) for kind in paths for p in paths[kind]]:
        with open(path, "rb") as f:
            lines = read(f.read())
        if lines is None:
            skipped += 1
            print(f"{os.path.basename(path)}: skipped: cannot be made here")
        for line in lines or ():
            wrong += 1
            print(f"{os.path.basename(path)}: {line}")
    print(f"{len(paths['tape'])} tapes, {len(paths['pairs'])} pairs, {len(paths['store'])} stores, {skipped} skipped, {wrong} differences")
    return 1 if wrong or not paths["tape"] else 0


if __name__ == "__main__":
    sys.exit(main())
