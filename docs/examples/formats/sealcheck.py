import base64, hashlib, json, os, re, subprocess, sys, tempfile

def need(truth, what):
    if not truth:
        sys.exit("does not hold: " + what)

def blake3(data):
    try:
        import blake3 as package
        return package.blake3(data).hexdigest()
    except ImportError:
        pass
    try:
        return subprocess.run(["b3sum", "--no-names"], input=data, capture_output=True, check=True).stdout.decode().strip()
    except FileNotFoundError:
        pass
    try:
        from b3 import b3
    except ImportError:
        sys.exit("cannot be checked without BLAKE3: pip install blake3, or b3sum, or b3.py beside this file")
    return b3(data)

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def canonical(value):  # RFC 8785, for objects whose keys are ASCII and whose numbers are integers
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

def load(path):
    def once(pairs):
        need(len(dict(pairs)) == len(pairs), "a key stands twice in " + path)
        return dict(pairs)
    raw = open(path, "rb").read()
    value = json.loads(raw, object_pairs_hook=once)
    need(canonical(value) == raw, path + " is not in canonical form")
    need(value["format"] == 1, "the format is not 1")
    return value

def root_of(leaves):  # RFC 6962, 2.1
    stack = []  # complete trees: how many leaves, hash
    for leaf in leaves:
        stack.append((1, sha(b"\0", leaf)))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            (n, right), (_, left) = stack.pop(), stack.pop()
            stack.append((2 * n, sha(b"\1", left, right)))
    if not stack:
        return sha()
    h = stack.pop()[1]
    while stack:
        h = sha(b"\1", stack.pop()[1], h)
    return h

def climb(leaf, at, size, path):  # RFC 6962, 2.1.1, as RFC 9162, 2.1.3.2 writes it
    need(0 <= at < size, "there is no such leaf")
    h, last = sha(b"\0", leaf), size - 1
    for other in map(bytes.fromhex, path):
        need(last > 0, "the path is too long")
        if at % 2 or at == last:
            h = sha(b"\1", other, h)
            while at % 2 == 0 and at > 0:
                at, last = at // 2, last // 2
        else:
            h = sha(b"\1", h, other)
        at, last = at // 2, last // 2
    need(last == 0, "the path is too short")
    return h

def signed(seal, vkey):  # the number of streams and their root, which the holder of the key has signed
    need(seal["key"] == vkey, "it was sealed with another key: " + seal["key"])
    name, key_id, key = vkey.split("+", 2)
    key = base64.b64decode(key, validate=True)
    need(key[0] == 1 and sha(name.encode(), b"\n", key)[:4].hex() == key_id, "that is no sealing key")
    text, block = seal["checkpoint"].rsplit("\n\n", 1)
    text += "\n"
    origin, size, root, end = text.split("\n")
    need(origin == name + "/recording/" + seal["id"] and end == "", "the checkpoint is of another recording")
    mine = [line.split(" ")[2] for line in block.splitlines() if line.startswith("\u2014 " + name + " ")]
    sigs = [base64.b64decode(s, validate=True) for s in mine]
    for text64, raw in zip(mine + [root], sigs + [base64.b64decode(root, validate=True)]):
        need(base64.b64encode(raw).decode() == text64, "base64 with spare bits")
    sigs = [s[4:] for s in sigs if s[:4].hex() == key_id]
    need(len(sigs) == 1, "it is not signed by that key")
    with tempfile.TemporaryDirectory() as d:
        def put(n, b):
            with open(os.path.join(d, n), "wb") as f:
                f.write(b)
            return os.path.join(d, n)
        spki = bytes.fromhex("302a300506032b6570032100") + key[1:]  # RFC 8410
        ok = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", put("key", spki), "-rawin",
                             "-in", put("text", text.encode()), "-sigfile", put("sig", sigs[0])], capture_output=True)
    need(ok.returncode == 0, "the signature")
    return int(size), base64.b64decode(root)

def data_of(part):
    return part["text"].encode() if "text" in part else base64.b64decode(part["base64"], validate=True)

def check_proof(proof, vkey):
    size, root = signed(proof, vkey)
    stream, leaf = proof["stream"], data_of(proof["leaf"])
    need(climb(canonical(stream), proof["streamAt"], size, proof["streamPath"]) == root, "the stream")
    need(climb(leaf, proof["leaf"]["at"], stream["leaves"], proof["leaf"]["path"]).hex() == stream["root"], "the leaf")
    for p in proof["payloads"]:
        named = {"lines": b'"%s"', "files": b'{"blake3":"%s",', "blobs": b"%s "}[stream["kind"]] % p["blake3"].encode()
        need(named in leaf and blake3(data_of(p)) == p["blake3"], "the payload " + p["blake3"])
    print("leaf %d of %s of recording %s, with %d payloads, as %s sealed it:" % (
        proof["leaf"]["at"], stream["path"], proof["id"], len(proof["payloads"]), vkey.split("+")[0]))
    sys.stdout.flush()
    sys.stdout.buffer.write(leaf)

def chunks_of(path):  # None where path is not cut into chunks
    index = path[:-len(".raw")] + ".jsonl"
    if not path.endswith(".raw") or not os.path.exists(index):
        return None
    raw, chunks, at = open(path, "rb").read(), [], 0
    try:
        for line in open(index, "rb"):
            if line.strip():
                pairs = json.loads(line, object_pairs_hook=lambda p: p)
                cut = {k: [v for key, v in pairs if key == k] for k in ("offset", "length")}
                if cut["offset"] != [at] or len(cut["length"]) != 1 or not 0 <= cut["length"][0] <= len(raw) - at:
                    return None
                chunks.append(raw[at:at + cut["length"][0]])
                at += cut["length"][0]
    except (ValueError, TypeError):
        return None
    return chunks if at == len(raw) else None

def check_recording(top, vkey):
    seal = load(os.path.join(top, "seal.json"))
    size, root = signed(seal, vkey)
    streams, files = {}, []  # path: kind, bytes, leaves
    for folder, folders, names in os.walk(top):
        if folder == top:
            folders[:] = [f for f in folders if f != "seal.tiles"]
            names = [n for n in names if n not in ("seal.json", "run.tape.annotations.jsonl", "run.seed")]
        for full in [os.path.join(folder, n) for n in names + folders]:
            need(not os.path.islink(full), full + " is a link")
        for name in names:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, top).replace(os.sep, "/")
            need(os.path.isfile(full), path + " is no file")
            data = open(full, "rb").read()
            chunks = chunks_of(full)
            if path.endswith((".tape", ".jsonl")):
                streams[path] = ["lines", len(data), re.findall(rb"[^\n]*\n|[^\n]+$", data)]
            elif chunks is not None:
                streams[path] = ["chunks", len(data), chunks]
            elif folder.endswith(".cas") and re.fullmatch("[0-9a-f]{64}", name):
                need(blake3(data) == name, path + " is not what its name says")
                store = streams.setdefault(path[:-65], ["blobs", 0, []])
                store[1] += len(data)
                store[2].append(b"%s %d\n" % (name.encode(), len(data)))
            else:
                files.append({"blake3": blake3(data), "path": path, "size": len(data)})
    files.sort(key=lambda f: f["path"].encode())
    need(files == seal["files"], "a file was changed, added or taken away")
    if files:
        streams["."] = ["files", sum(f["size"] for f in files), [canonical(f) for f in files]]
    found = [{"bytes": n, "kind": kind, "leaves": len(leaves), "path": path,
              "root": root_of(sorted(leaves) if kind == "blobs" else leaves).hex()}
             for path, (kind, n, leaves) in sorted(streams.items(), key=lambda s: s[0].encode())]
    for have, want in zip(found, seal["streams"]):
        need(have == want, "stream %s is not what was sealed" % want["path"])
    need(len(found) == len(seal["streams"]) == size, "a stream was added or taken away")
    need(root_of(canonical(s) for s in found) == root, "the root")
    print("recording %s: %d streams as %s sealed them" % (seal["id"], size, vkey.split("+")[0]))

vkey = open(sys.argv[1]).read().strip()
if os.path.isdir(sys.argv[2]):
    check_recording(sys.argv[2], vkey)
else:
    check_proof(load(sys.argv[2]), vkey)
