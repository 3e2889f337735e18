"""Frames that no library sends, written byte by byte: what each is answered with, and that the connection lives after it."""
import json
import os
import socket
import struct
import time
import urllib.parse

from cases import case, main, same

PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Wire:
    """A WebSocket of which every bit can be chosen."""

    def __init__(self, scene, authenticate=True):
        self.unread = b""
        if scene.url.startswith("unix:"):
            self.conn = socket.socket(socket.AF_UNIX)
            self.conn.connect(scene.url[5:])
            host = "localhost"
        else:
            url = urllib.parse.urlsplit(scene.url)
            self.conn = socket.create_connection((url.hostname, url.port))
            host = url.netloc
        self.conn.settimeout(20)
        self.conn.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.unread:
            self.unread += self.some()
        head, self.unread = self.unread.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101"), head
        if authenticate and scene.token is not None:
            self.text(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "session.auth", "params": {"token": scene.token}}))
            assert self.reply()["result"]["ok"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.conn.close()

    def some(self):
        part = self.conn.recv(1 << 16)
        if not part:
            raise EOFError("the daemon closed the connection")
        return part

    def bytes(self, n):
        while len(self.unread) < n:
            self.unread += self.some()
        taken, self.unread = self.unread[:n], self.unread[n:]
        return taken

    def frame(self, opcode, payload, fin=True, mask=True, reserved=0, length=None):
        """Sends a frame; length is what its header says."""
        n = len(payload) if length is None else length
        head = bytes([(fin << 7) | (reserved << 4) | opcode])
        bit = 0x80 if mask else 0
        if n < 126:
            head += bytes([bit | n])
        elif n < 1 << 16:
            head += bytes([bit | 126]) + struct.pack(">H", n)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", n)
        if mask:
            head += b"\0\0\0\0"  # a mask like any other
        self.conn.sendall(head + payload)

    def text(self, text, **more):
        self.frame(TEXT, text if isinstance(text, bytes) else text.encode(), **more)

    def read(self):
        """The next frame: opcode and payload."""
        head = self.bytes(2)
        assert head[0] & 0x70 == 0, f"reserved bits are set: {head[0]:#x}"
        assert head[1] & 0x80 == 0, "the daemon masks"
        n = head[1] & 0x7F
        if n == 126:
            n, = struct.unpack(">H", self.bytes(2))
        elif n == 127:
            n, = struct.unpack(">Q", self.bytes(8))
        assert head[0] & 0x80, "the daemon fragments"
        return head[0] & 15, self.bytes(n)

    def reply(self):
        opcode, payload = self.read()
        same(opcode, TEXT, f"opcode of {payload[:100]!r}")
        return json.loads(payload)

    def call(self, method, params):
        """The result of a method; what comes before it is dropped."""
        self.text(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
        while True:
            reply = self.reply()
            if reply.get("id") == method:
                return reply["result"]

    def lives(self):
        """Asks something and wants its answer to be the next frame."""
        self.text('{"jsonrpc":"2.0","id":"alive","method":"state.keys"}')
        same(self.reply(), {"jsonrpc": "2.0", "id": "alive", "result": []})

    def closes(self, *codes, answer=True):
        """Wants a close frame with one of the codes, answers it, and wants the end."""
        try:
            while True:
                opcode, payload = self.read()
                if opcode == CLOSE:
                    code, = struct.unpack(">H", payload[:2])
                    payload[2:].decode()
                    if answer:
                        self.frame(CLOSE, payload[:2])
                    break
            assert code in codes, f"closed with {code}, want {codes}"
            while self.some():
                pass
        except (EOFError, ConnectionError):
            assert "code" in locals(), f"the connection ended without a close frame, want {codes}"


def texts(wire, cases):
    for text, code, number in cases:
        wire.text(text)
        reply = wire.reply()
        shown = text[:80]
        same((reply.get("error") or {}).get("code"), code, f"{shown!r} → {json.dumps(reply)[:300]}")
        same(reply["jsonrpc"], "2.0")
        if number is not ...:
            same(reply["id"], number, f"id of the answer to {shown!r}")
        wire.lives()


@case
async def not_json(scene):
    with Wire(scene) as wire:
        texts(wire, [(text, PARSE, None) for text in (
            "", " ", "{", "}", "nul", "{}x", "{'a':1}", '{"a":1,}', "\ufeff{}", '{"id":1 "method":"x"}', '"', "[1", "[1,]", "{}{}",
            '{"id":01,"method":"x"}', '{"id":+1,"method":"x"}', '{"id":1,"method":"a\nb"}', '{"id":1,"method":"\\x"}', "NaN", "\0",
            '{"jsonrpc":"2.0","id":1,"method":"state.set","params":{"key":"k","value":1.}}')])


@case
async def no_request(scene):
    with Wire(scene) as wire:
        texts(wire, [(text, REQUEST, ...) for text in (
            "[]", '[{"jsonrpc":"2.0","id":1,"method":"tools.list"}]', "[1,2]", "1", '"x"', "null", "true", "{}", '{"jsonrpc":"2.0"}',
            '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"2.0","id":1,"method":1}', '{"jsonrpc":"2.0","id":1,"method":null}',
            '{"jsonrpc":"2.0","id":1,"method":["tools.list"]}', '{"jsonrpc":"1.0","id":1,"method":"tools.list"}',
            '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools.list"}', '{"jsonrpc":"2.0","id":1,"method":"x","method":"tools.list"}')])


@case
async def ids_of_every_type(scene):
    with Wire(scene) as wire:
        for raw in ('0', '-1', '1', '9007199254740993', '123456789012345678901234567890', '1.5', '-0', '1e400', '1E+2', '"x"', '""', '"1"',
                    '"\\u0000"', '"é"', '"' + "i" * 1000 + '"', '"cb-1"'):
            wire.text('{"jsonrpc":"2.0","method":"state.exists","params":{"key":"k"},"id":' + raw + '}')
            _, payload = wire.read()
            same(json.loads(payload)["result"], False, raw)
            assert raw in payload.decode() or json.loads(payload)["id"] == json.loads(raw), f"id {raw} came back in {payload}"
            if raw[0] != '"':
                assert (b'"id":' + raw.encode()) in payload.replace(b" ", b""), f"id {raw} came back in {payload}"
        texts(wire, [('{"jsonrpc":"2.0","method":"tools.list","id":' + raw + '}', REQUEST, None)
                     for raw in ("true", "false", "{}", "[]", "[1]", '{"a":1}')])


@case
async def notifications_are_not_answered(scene):
    with Wire(scene) as wire:
        for text in ('{"jsonrpc":"2.0","method":"tools.list"}', '{"jsonrpc":"2.0","method":"no.such"}',
                     '{"jsonrpc":"2.0","method":"state.set","params":{}}', '{"jsonrpc":"2.0","method":"state.get","params":{"key":1}}'):
            wire.text(text)
        for text in ('{"jsonrpc":"2.0","id":"cb-1","result":1}', '{"jsonrpc":"2.0","id":"cb-99","error":{"code":1,"message":"x"}}',
                     '{"jsonrpc":"2.0","id":7,"result":null}', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}'):
            wire.text(text)  # replies to nothing
        wire.lives()


@case
async def params_of_the_wrong_shape(scene):
    with Wire(scene) as wire:
        for params in ("1", '"x"', "true"):
            texts(wire, [('{"jsonrpc":"2.0","id":1,"method":"tools.list","params":' + params + '}', PARAMS, 1)])
        wrong = [("state.get", "{}"), ("state.get", '{"key":1}'), ("state.set", "[]"), ("state.exists", '{"key":null}'), ("tools.register", "{}"),
                 ("tools.register", '[{"name":1}]'), ("tools.register", '["x"]'), ("tools.register", "[{}]"), ("tools.unregister", "{}"),
                 ("policy.register", "{}"), ("policy.register", '{"name":"x","rule":"no_such_rule"}'), ("policy.register", '{"name":"x","rule":"deny_tool"}'),
                 ("policy.register", '{"name":"x","rule":"deny_tool_param","target":"t"}'), ("policy.unregister", "{}"),
                 ("proposal.submit", "{}"), ("proposal.submit", '{"proposal":{}}'),
                 ("proposal.submit", '{"proposal":{"actions":{}}}'), ("proposal.submit", '{"proposal":{"actions":[1]}}'),
                 ("runs.start", '{"intent":1,"agent_id":"a"}'), ("runs.start", "[]"), ("runs.complete", "{}"), ("runs.complete", '{"run_id":"x"}'),
                 ("runs.record_turns", '{"run_id":"x","turns":1}'), ("runs.record_turns", '{"turns":[{}]}'), ("runs.record_turns", '{"run_id":"x","turns":[1]}'),
                 ("runs.get_trace", "{}"), ("runs.get_trace", '{"run_id":"x","cursor":"1"}'),
                 ("runs.subscribe", "{}"), ("runs.unsubscribe", "{}"), ("session.init", '{"tools":1}')]
        texts(wire, [(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}', PARAMS, 1) for method, params in wrong])


@case
async def unknown_methods(scene):
    with Wire(scene) as wire:
        for method in ("no.such", "", "tools", "tools.", "TOOLS.LIST", "tools.list ", "tools.execute", "rpc.discover", "x" * 100000, "\\u0000"):
            wire.text('{"jsonrpc":"2.0","id":5,"method":"' + method + '"}')
            reply = wire.reply()
            same((reply["id"], reply["error"]["code"]), (5, METHOD))
            assert len(json.dumps(reply)) < 10000, "the answer repeats a long name"
        wire.lives()


@case
async def a_million_brackets(scene):
    deep = 1_000_000
    with Wire(scene) as wire:
        for text in ("[" * deep, "[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep,
                     '{"jsonrpc":"2.0","id":1,"method":"state.set","params":{"key":"k","value":' + "[" * deep + "]" * deep + "}}",
                     '{"jsonrpc":"2.0","id":1,"method":"runs.record_turns","params":{"run_id":"x","turns":[{"output":' + '{"a":' * deep + "1" + "}" * deep + "}]}}"):
            wire.text(text)
            assert wire.reply()["error"]["code"] in (PARSE, REQUEST, PARAMS)
            wire.lives()


@case
async def frames_that_are_too_long(scene):
    with Wire(scene) as wire:  # its header says so: nothing of it need be read
        wire.frame(TEXT, b"x", length=64 << 20)
        wire.closes(1009)
    with Wire(scene) as wire:
        try:
            wire.frame(TEXT, b'{"jsonrpc":"2.0","id":1,"method":"x","params":["' + b"x" * (64 << 20) + b'"]}')
        except ConnectionError:
            pass  # it closed while we were writing
        try:
            wire.closes(1009)
        except AssertionError as problem:
            assert "without a close frame" in str(problem), problem  # reset: we wrote on
    with Wire(scene) as wire:
        for _ in range(40):
            try:
                wire.frame(TEXT if _ == 0 else 0, b"x" * (1 << 20), fin=False)
            except ConnectionError:
                break
        try:
            wire.closes(1009)
        except AssertionError as problem:
            assert "without a close frame" in str(problem), problem
    with Wire(scene) as wire:
        wire.frame(TEXT, b"x", length=(1 << 63) + 5)
        wire.closes(1002, 1009)
    with Wire(scene) as wire:
        wire.text('{"jsonrpc":"2.0","id":1,"method":"state.set","params":{"key":"k","value":"' + "y" * (8 << 20) + '"}}')
        reply = wire.reply()  # below the limit of a frame; what a state may hold is another matter
        assert reply["id"] == 1, reply


@case
async def fragments_and_control_frames(scene):
    with Wire(scene) as wire:
        whole = '{"jsonrpc":"2.0","id":"é日","method":"state.keys"}'.encode()
        for n, byte in enumerate(whole):
            wire.frame(TEXT if n == 0 else 0, bytes([byte]), fin=n == len(whole) - 1)
            if n % 7 == 3:
                wire.frame(PING, b"p%d" % n)
                same(wire.read(), (PONG, b"p%d" % n))
        same(wire.reply()["id"], "é日")
        wire.frame(PING, b"x" * 125)
        same(wire.read(), (PONG, b"x" * 125))
        wire.frame(PONG, b"nobody asked")
        wire.frame(TEXT, b"", fin=False)
        wire.frame(0, b"", fin=False)
        wire.frame(0, whole)
        same(wire.reply()["id"], "é日")
        wire.lives()
        wire.frame(CLOSE, struct.pack(">H", 1000))
        wire.closes(1000)


@case
async def frames_against_the_protocol(scene):
    ok = b'{"jsonrpc":"2.0","id":1,"method":"state.keys"}'
    for what, send, codes in (
            ("a binary frame", lambda w: w.frame(BINARY, ok), (1003,)),
            ("invalid UTF-8", lambda w: w.text(b'{"id":"\xff"}'), (1007,)),
            ("half a character", lambda w: w.text(b'{"id":"\xe2\x82'), (1007,)),
            ("a surrogate", lambda w: w.text(b'{"id":"\xed\xa0\x80"}'), (1007,)),
            ("invalid UTF-8 before the end", lambda w: w.text(b"\xff", fin=False), (1007,)),
            ("a reserved bit", lambda w: w.frame(TEXT, ok, reserved=4), (1002,)),
            ("an unknown opcode", lambda w: w.frame(3, ok), (1002,)),
            ("an unknown control opcode", lambda w: w.frame(11, b""), (1002,)),
            ("no mask", lambda w: w.frame(TEXT, ok, mask=False), (1002,)),
            ("a continuation of nothing", lambda w: w.frame(0, ok), (1002,)),
            ("a message within a message", lambda w: (w.frame(TEXT, b"{", fin=False), w.frame(TEXT, ok)), (1002,)),
            ("a fragmented ping", lambda w: w.frame(PING, b"", fin=False), (1002,)),
            ("a long ping", lambda w: w.frame(PING, b"x" * 126), (1002,)),
            ("a close code that is none", lambda w: w.frame(CLOSE, struct.pack(">H", 1005)), (1002,)),
            ("half a close code", lambda w: w.frame(CLOSE, b"\x03"), (1002,)),
            ("a close reason that is not UTF-8", lambda w: w.frame(CLOSE, struct.pack(">H", 1000) + b"\xff"), (1007,))):
        with Wire(scene) as wire:
            try:
                send(wire)
                wire.closes(*codes)
            except AssertionError as problem:
                raise AssertionError(f"{what}: {problem}") from None


@case
async def a_close_that_is_not_answered(scene):
    with Wire(scene) as wire:
        wire.frame(BINARY, b"")
        wire.closes(1003, answer=False)


@case
async def cut_off_within_a_frame(scene):
    for part in (b"", b"\x81", b"\x81\xfe", b"\x81\xfe\x10", b"\x81\x85\0\0\0\0{"):
        with Wire(scene) as wire:
            wire.conn.sendall(part)
    for text in (b"G", b"GET / HTTP/1.1\r\n", b"{", b"\x16\x03\x01", os.urandom(1000)):
        with Wire(scene, authenticate=False) as wire:
            wire.conn.sendall(text)
    with Wire(scene) as wire:
        wire.lives()


@case
async def a_subscriber_that_does_not_read(scene):
    """It loses events, is told from where to catch up, and holds up nobody."""
    with Wire(scene) as writer, Wire(scene) as reader:
        run = writer.call("runs.start", {"intent": "x", "agent_id": scene.agent})["run_id"]
        reader.call("runs.start", {"intent": "x", "agent_id": scene.agent})  # whose this one is, too
        same(reader.call("runs.subscribe", {"run_id": run})["cursor"], 0)
        began = time.monotonic()
        for n in range(0, 1200, 4):  # 19 MB: more than waits for a slow reader, and fits into the sockets
            writer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": str(n + i), "output": "x" * 16000} for i in range(4)]})
        writer.call("runs.complete", {"run_id": run, "outcome": {"status": "done"}})
        took = time.monotonic() - began
        assert took < 9, f"the writer took {took:.1f} s"
        records, lost = scene.lines(run)[:1], 0
        while records[-1]["record"] != "ended":
            event = reader.reply()
            params = event["params"]
            if event["method"] == "runs.trace.event":
                same(params["cursor"], len(records))
                records.append(params["record"])
                continue
            same((event["method"], params["run_id"], params["cursor"]), ("runs.trace.lost", run, len(records)))
            lost += params["lost"]
            while records[-1]["record"] != "ended":  # all of it is there: the run is over
                page = reader.call("runs.get_trace", {"run_id": run, "cursor": len(records)})["records"]
                assert page, f"nothing to catch up with behind {len(records)} records"
                records += page
        same(records, scene.lines(run))
        assert lost > 0, "nothing was lost: the test holds up too little"


main()
