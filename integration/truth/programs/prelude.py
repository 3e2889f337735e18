# What every generated program in Python begins with: the acts that it puts in order. Standard library only.
import gzip, json, os, random, shutil, socket, sqlite3, subprocess, sys, tempfile, threading, time, uuid
import urllib.error, urllib.parse, urllib.request

true, false, null = True, False, None
TREE, HOME, TMP = os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"]
HERE = os.path.dirname(os.path.abspath(__file__))
ROOTS = {"tree": TREE, "home": HOME, "tmp": TMP}


def argument(n): return sys.argv[n]
def variable(name): return os.environ[name]
def setting(name): return json.load(open(os.path.join(HOME, ".agentrc")))[name]


# What differs in every run.

def now_iso(): return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".%06dZ" % (time.time_ns() // 1000 % 1000000)
def now_words(): return time.strftime("%A, %B %d, %Y at %H:%M:%S")
def unix_seconds(): return "%.6f" % time.time()
def unix_ms(): return str(time.time_ns() // 1000000)
def uuid4(): return str(uuid.uuid4())
def uuid1(): return str(uuid.uuid1())
def random_int(): return str(random.randrange(1000, 1000000))
def random_float(): return str(random.random())
def random_hex(): return os.urandom(12).hex()
def set_order(): return ",".join({"ape", "bear", "cat", "dog", "elk", "fox", "gnu", "hen"})
def hash_of(): return str(hash("some words"))
def address(): return hex(id(object()))
def pid(): return str(os.getpid())
def temp_dir(): return tempfile.mkdtemp(prefix="agent-")
def temp_name(): return os.path.basename(tempfile.mkdtemp(prefix="agent-"))
def own_mtime(): return repr(os.stat(put(HOME, ".stamp", "x", 0o644)).st_mtime)
def thread_id(): return str(threading.get_ident())
def child_date(): return output(["date", "+%H:%M:%S.%N"])
def child_random(): return output(["bash", "-c", "echo $RANDOM"])
def child_temp(): return output(["mktemp", "-u", "out-XXXXXXXX"])
def child_uuid(): return output(["cat", "/proc/sys/kernel/random/uuid"])
def child_pid(): return output(["sh", "-c", "echo $$"])
def child_python(): return output([sys.executable, "-c", "import random, time; print(time.time_ns(), random.random(), {'a', 'b', 'c', 'd'})"])


def took():
    began = time.monotonic()
    sorted(range(20000), key=lambda n: -n)
    return "%.2f ms" % ((time.monotonic() - began) * 1000)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def output(argv): return subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout.decode().strip()


# Output.

def say(o): print(o["text"], flush=True)
def complain(o): print(o["text"], file=sys.stderr, flush=True)
def say_in_parts(o): [(sys.stdout.write(p), sys.stdout.flush()) for p in o["parts"]]
def rest(o): time.sleep(o["ms"] / 1000)
def finish(o): sys.exit(o["code"])


# Files.

def put(root, name, text, mode):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def place(o): return os.path.join(ROOTS[o["root"]], o["name"])
def write(o): put(ROOTS[o["root"]], o["name"], o["text"], o.get("mode", 0o644))
def look(o): open(place(o)).read()
def symlink(o): os.symlink(o["target"], place(o))
def hard_link(o): os.link(os.path.join(ROOTS[o["root"]], o["target"]), place(o))
def directory(o): os.mkdir(place(o))
def fifo(o): os.mkfifo(place(o))
def attribute(o): os.setxattr(place(o), "user.note", o["text"].encode())
def set_mode(o): os.chmod(place(o), o["mode"])
def set_time(o): os.utime(place(o), (o["at"], o["at"]))
def remove(o): os.remove(place(o))
def rename(o): os.rename(place(o), os.path.join(ROOTS[o["root"]], o["to"]))


def append(o):
    with open(place(o), "a", encoding="utf-8", newline="") as f:
        f.write(o["text"])


def cut(o): os.truncate(place(o), o["to"])


def big(o):
    """A sparse file with some text before its end."""
    with open(place(o), "wb") as f:
        f.truncate(o["mib"] << 20)
        f.seek((o["mib"] << 20) - 4096)
        f.write(o["text"].encode())


def row(o):
    db = sqlite3.connect(place(o))
    with db:
        db.execute("create table rows (what text)")
        db.execute("insert into rows values (?)", (o["text"],))
    db.close()


def threads(o):
    def work(n):
        write({"root": "tree", "name": "%s-%d" % (o["name"], n), "text": o["texts"][n]})
    all = [threading.Thread(target=work, args=(n,)) for n in range(len(o["texts"]))]
    [t.start() for t in all], [t.join() for t in all]


def daemon(o):
    at = os.path.join(TREE, o["name"])
    subprocess.run(["sh", "-c", 'setsid sh -c \'printf %s "$1" >"$2.part"; mv "$2.part" "$2"\' daemon "$1" "$2" >/dev/null 2>&1 &', "start", o["text"], at], check=True)
    while not os.path.exists(at):
        time.sleep(0.005)


def passing(o):
    write(o)
    os.remove(place(o))


def put_back(o):
    before = open(place(o)).read()
    write(o)
    put(ROOTS[o["root"]], o["name"], before, 0o644)


# Children.

def child(o):
    where = os.path.join(TREE, o["cwd"]) if "cwd" in o else None
    done = subprocess.run(o["argv"], input=o.get("stdin", "").encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **o.get("env", {})}, cwd=where)
    if o.get("show"):
        say({"text": done.stdout.decode().strip()})
    return done.stdout.decode().strip()


# The network.

def fetch(method, url, headers, data):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as e:
        return failed(e.code)
    except OSError:
        return failed(0)


def failed(code):
    if not TOLERANT:
        print("the call failed:", code, file=sys.stderr)
        sys.exit(9)
    return json.dumps({"failed": code})


def http(o):
    url = "https://" + o["host"] + urllib.parse.quote(o["path"])
    if o.get("query"):
        url += "?" + urllib.parse.urlencode(o["query"])
    headers, data = dict(o.get("headers", {})), None
    if "json" in o:
        headers["Content-Type"], data = "application/json", json.dumps(o["json"]).encode()
    elif "raw" in o:
        headers["Content-Type"], data = o["type"], o["raw"].encode()
        if o.get("gzip"):
            headers["Content-Encoding"], data = "gzip", gzip.compress(data, mtime=0)
    elif "form" in o:
        headers["Content-Type"], data = "application/x-www-form-urlencoded", urllib.parse.urlencode(o["form"]).encode()
    elif "parts" in o:
        headers["Content-Type"], data = "multipart/form-data; boundary=" + o["boundary"], multipart(o).encode()
    return json.loads(fetch(o["method"], url, headers, data)).get("says", "nothing")


def multipart(o):
    text = ""
    for p in o["parts"]:
        text += "--" + o["boundary"] + '\r\nContent-Disposition: form-data; name="' + p["name"] + '"'
        if "file" in p:
            text += '; filename="' + p["file"] + '"\r\nContent-Type: text/plain'
        text += "\r\n\r\n" + p["text"] + "\r\n"
    return text + "--" + o["boundary"] + "--\r\n"


def resolve(o):
    try:
        socket.getaddrinfo(o["name"], 443)
    except OSError:
        pass


def knock(o):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(o["path"])
        except OSError:
            pass


def datagram(o):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(o["text"].encode(), (o["to"], 9125))
        except OSError:
            pass


# Models. A turn is ["user", text], ["calls", [[id, name, arguments]…]] or ["results", [[id, name, text]…]].

def ask(o):
    turns = [["user", o["prompt"]]]
    text, calls = exchange(o, turns)
    for _ in range(3):
        if not calls:
            break
        turns += [["calls", calls], ["results", results(o, calls)]]
        text, calls = exchange(o, turns)
    return text


def results(o, calls):
    if not o["tool"].get("race"):
        return [[c[0], c[1], o["tool"]["result"]] for c in calls]
    done = []

    def work(c):
        time.sleep(random.random() / 50)
        done.append([c[0], c[1], o["tool"]["result"] + " of " + json.dumps(c[2])])
    threads = [threading.Thread(target=work, args=(c,)) for c in calls]
    [t.start() for t in threads], [t.join() for t in threads]
    return done


def exchange(o, turns):
    url, headers, body = REQUESTS[o["wire"]](o, turns)
    headers = {"Content-Type": "application/json", **headers, **o.get("headers", {})}
    raw = fetch("POST", url, headers, json.dumps(body).encode())
    if raw.startswith('{"failed"'):
        return raw, []
    lines = [line.removeprefix("data: ") for line in raw.splitlines() if line.startswith(("data: {", "{"))]
    events = [json.loads(line) for line in lines] if o["stream"] else [json.loads(raw)]
    return ANSWERS[o["wire"]](events, o["stream"])


def schema(o): return {"type": "object", "properties": {o["tool"]["property"]: {"type": "string"}}}


def anthropic(o, turns):
    forms = {
        "user": lambda t: {"role": "user", "content": t},
        "calls": lambda cs: {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in cs]},
        "results": lambda rs: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": t} for i, n, t in rs]},
    }
    body = {"model": o["model"], "max_tokens": o["limit"], "temperature": o["temperature"], "stream": o["stream"], "system": o["system"], "messages": [forms[k](v) for k, v in turns]}
    if "tool" in o:
        body["tools"] = [{"name": o["tool"]["name"], "description": o["tool"]["description"], "input_schema": schema(o)}]
    return "https://api.anthropic.com/v1/messages", {"x-api-key": "sk-ant-dummy", "anthropic-version": "2023-06-01"}, body


def mistral(o, turns):
    url, headers, body = chat(o, turns)
    body["max_tokens"] = body.pop("max_completion_tokens")
    return "https://api.mistral.ai/v1/chat/completions", headers, body


def ollama(o, turns):
    messages = [{"role": "system", "content": o["system"]}] + [{"role": "user", "content": t} for k, t in turns]
    options = {"temperature": o["temperature"], "num_predict": o["limit"]}
    return "https://ollama.example.com/api/chat", {}, {"model": o["model"], "stream": o["stream"], "options": options, "messages": messages}


def chat(o, turns):
    messages = [{"role": "system", "content": o["system"]}]
    for k, v in turns:
        if k == "user":
            messages.append({"role": "user", "content": v})
        elif k == "calls":
            messages.append({"role": "assistant", "content": None, "tool_calls": [
                {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in v]})
        else:
            messages += [{"role": "tool", "tool_call_id": i, "content": t} for i, n, t in v]
    body = {"model": o["model"], "max_completion_tokens": o["limit"], "temperature": o["temperature"], "stream": o["stream"], "messages": messages}
    if "tool" in o:
        body["tools"] = [{"type": "function", "function": {"name": o["tool"]["name"], "description": o["tool"]["description"], "parameters": schema(o)}}]
    return "https://api.openai.com/v1/chat/completions", {"Authorization": "Bearer sk-dummy"}, body


def responses(o, turns):
    items = []
    for k, v in turns:
        if k == "user":
            items.append({"role": "user", "content": v})
        elif k == "calls":
            items += [{"type": "function_call", "call_id": i, "name": n, "arguments": json.dumps(a)} for i, n, a in v]
        else:
            items += [{"type": "function_call_output", "call_id": i, "output": t} for i, n, t in v]
    body = {"model": o["model"], "max_output_tokens": o["limit"], "temperature": o["temperature"], "stream": o["stream"], "instructions": o["system"], "input": items}
    if "tool" in o:
        body["tools"] = [{"type": "function", "name": o["tool"]["name"], "description": o["tool"]["description"], "parameters": schema(o)}]
    return "https://api.openai.com/v1/responses", {"Authorization": "Bearer sk-dummy"}, body


def gemini(o, turns):
    forms = {
        "user": lambda t: {"role": "user", "parts": [{"text": t}]},
        "calls": lambda cs: {"role": "model", "parts": [{"functionCall": {"id": i, "name": n, "args": a}} for i, n, a in cs]},
        "results": lambda rs: {"role": "user", "parts": [{"functionResponse": {"id": i, "name": n, "response": {"output": t}}} for i, n, t in rs]},
    }
    body = {"systemInstruction": {"parts": [{"text": o["system"]}]}, "contents": [forms[k](v) for k, v in turns], "generationConfig": {"maxOutputTokens": o["limit"], "temperature": o["temperature"]}}
    if "tool" in o:
        body["tools"] = [{"functionDeclarations": [{"name": o["tool"]["name"], "description": o["tool"]["description"], "parametersJsonSchema": schema(o)}]}]
    verb = "streamGenerateContent?alt=sse" if o["stream"] else "generateContent"
    return "https://generativelanguage.googleapis.com/v1beta/models/" + o["model"] + ":" + verb, {"x-goog-api-key": "dummy"}, body


def from_anthropic(events, stream):
    if not stream:
        blocks = events[0]["content"]
    else:
        blocks = []
        for e in events:
            if e["type"] == "content_block_start":
                blocks.append({**e["content_block"], "json": ""})
            elif e["type"] == "content_block_delta" and e["delta"]["type"] == "text_delta":
                blocks[e["index"]]["text"] += e["delta"]["text"]
            elif e["type"] == "content_block_delta":
                blocks[e["index"]]["json"] += e["delta"]["partial_json"]
        for b in blocks:
            if b["type"] == "tool_use":
                b["input"] = json.loads(b["json"])
    return "".join(b["text"] for b in blocks if b["type"] == "text"), [[b["id"], b["name"], b["input"]] for b in blocks if b["type"] == "tool_use"]


def from_chat(events, stream):
    text, calls = "", {}
    for e in events:
        for choice in e["choices"]:
            m = choice["delta"] if stream else choice["message"]
            text += m.get("content") or ""
            for n, c in enumerate(m.get("tool_calls") or []):
                known = calls.setdefault(c.get("index", n), ["", "", ""])
                known[0] += c.get("id") or ""
                known[1] += c["function"].get("name") or ""
                known[2] += c["function"]["arguments"]
    return text, [[i, n, json.loads(a)] for i, n, a in calls.values()]


def from_ollama(events, stream): return "".join(e["message"]["content"] for e in events), []


def from_responses(events, stream):
    whole = [e["response"] for e in events if e["type"] == "response.completed"][0] if stream else events[0]
    text = "".join(c["text"] for item in whole["output"] if item["type"] == "message" for c in item["content"])
    return text, [[i["call_id"], i["name"], json.loads(i["arguments"])] for i in whole["output"] if i["type"] == "function_call"]


def from_gemini(events, stream):
    parts = [p for e in events for p in e["candidates"][0]["content"]["parts"]]
    calls = [p["functionCall"] for p in parts if "functionCall" in p]
    return "".join(p.get("text", "") for p in parts), [[c["id"], c["name"], c["args"]] for c in calls]


REQUESTS = {"anthropic": anthropic, "chat": chat, "mistral": mistral, "ollama": ollama, "responses": responses, "gemini": gemini}
ANSWERS = {"anthropic": from_anthropic, "chat": from_chat, "mistral": from_chat, "ollama": from_ollama, "responses": from_responses, "gemini": from_gemini}


# Tools over MCP, on stdin and stdout of a server.

def mcp(o):
    server = subprocess.Popen(["/usr/bin/python3", os.path.join(HERE, "server.py")] + o["args"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, **o["env"]})
    number, texts = 0, []

    def request(method, params):
        nonlocal number
        number += 1
        tell({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return json.loads(server.stdout.readline() or '{"error": 0}').get("result", {})

    def tell(message):
        try:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
        except OSError:
            pass
    request("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "generated", "version": "1"}})
    tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
    request("tools/list", {})
    for c in o["calls"]:
        texts += [p["text"] for p in request("tools/call", {"name": c["tool"], "arguments": c["arguments"]}).get("content", [])]
    server.stdin.close()
    server.wait()
    return " and ".join(texts)


def together(o):
    """All acts side by side; what they came to, in their order here."""
    got = [""] * len(o["acts"])

    def work(n):
        got[n] = o["acts"][n]()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(got))]
    [t.start() for t in threads], [t.join() for t in threads]
    return " / ".join(map(str, got))
