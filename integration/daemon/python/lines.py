"""The Unix socket without WebSocket: one JSON text a line, the same protocol."""
import asyncio
import json
import os
import stat

from cases import case, main, same


class Lines:
    """A connection that speaks lines."""

    @classmethod
    async def dial(cls, scene, authenticate=True):
        self = cls()
        self.reader, self.writer = await asyncio.open_unix_connection(scene.url[5:], limit=32 << 20)
        if authenticate and scene.token:
            reply = await self.ask("session.auth", {"token": scene.token, "agent_id": scene.agent})
            same(reply["result"]["ok"], True)
        return self

    def send(self, text):
        self.writer.write(text if isinstance(text, bytes) else text.encode())

    async def read(self):
        line = await asyncio.wait_for(self.reader.readline(), 20)
        assert line.endswith(b"\n"), f"the line ends early: {line[:200]!r}"
        return json.loads(line)

    async def ask(self, method, params, number=1):
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        return await self.read()

    async def ended(self):
        same(await asyncio.wait_for(self.reader.read(), 20), b"")


@case
async def a_run_by_lines(scene):
    lines = await Lines.dial(scene)
    started = (await lines.ask("runs.start", {"intent": "x", "agent_id": scene.agent}))["result"]
    await lines.ask("tools.register", [{"name": "echo"}])
    lines.send(json.dumps({"jsonrpc": "2.0", "id": "p", "method": "proposal.submit", "params": {"proposal": {"actions": [
        {"type": "tool_call", "tool": "echo", "parameters": {"text": "two\nlines"}}]}}}) + "\n")
    request = await lines.read()
    same((request["method"], request["params"]["parameters"]), ("tools.execute", {"text": "two\nlines"}))
    lines.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": "a\nb"}) + "\r\n")
    reply = await lines.read()
    same((reply["id"], reply["result"]["results"][0]["output"]), ("p", "a\nb"))
    same(len(scene.lines(started["run_id"])), 2)
    lines.writer.close()


@case
async def lines_that_are_wrong(scene):
    lines = await Lines.dial(scene)
    for text, code in (("nonsense\n", -32700), ("[]\n", -32600), ('{"id":1\n', -32700), ("{}\n", -32600), (b'{"id":"\xff"}\n', -32700),
                       ("[" * 1_000_000 + "\n", -32700), ('{"jsonrpc":"2.0","id":{},"method":"x"}\n', -32600)):
        lines.send(text)
        reply = await lines.read()
        same((reply["error"]["code"], reply["id"]), (code, None), repr(text[:40]))
    lines.send("\n\n")  # empty lines are nothing
    for part in ('{"jsonrpc":"2.0",', '"id":9,"method":', '"state.keys"}', "\n"):
        lines.send(part)
        await lines.writer.drain()
        await asyncio.sleep(0.01)
    same(await lines.read(), {"jsonrpc": "2.0", "id": 9, "result": []})
    lines.writer.close()


@case
async def a_line_that_is_too_long(scene):
    lines = await Lines.dial(scene)
    try:
        for _ in range(64):
            lines.send(b"[" + b"1," * (1 << 19))
            await lines.writer.drain()
    except ConnectionError:
        return
    try:
        await lines.ended()
    except ConnectionError:
        pass


@case
async def lines_without_a_token(scene):
    if not scene.token:
        return
    lines = await Lines.dial(scene, authenticate=False)
    reply = await lines.ask("tools.list", {})
    same(reply["error"]["code"], -32001)
    await lines.ended()


@case
async def the_socket_is_for_its_owner(scene):
    mode = os.stat(scene.url[5:]).st_mode
    same((stat.S_ISSOCK(mode), oct(stat.S_IMODE(mode))), (True, "0o600"))


main()
