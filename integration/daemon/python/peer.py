"""A client of the daemon in Python: JSON-RPC 2.0 over the websockets package, tools served while own calls are in flight.

It shares no code with Tapedeck. It runs with websockets 10 (Debian 12) and newer."""
import asyncio
import itertools
import json

import websockets


class Refused(Exception):
    """An error that the daemon replied."""

    def __init__(self, method, error):
        super().__init__(f"{method}: {error}")
        self.code, self.message, self.data = error.get("code"), error.get("message"), error.get("data")


class Peer:
    """One connection. tools maps names to async functions of (parameters, request) that give an output or raise."""

    def __init__(self, socket):
        self.socket, self.tools = socket, {}
        self.waiting, self.ids = {}, itertools.count(1)
        self.ran, self.cancels, self.requests = [], [], []  # tools called, tools.cancel, tools.execute as they came
        self.events = asyncio.Queue()  # runs.trace.event and what else is notified, in order
        self.working = {}  # request_id → the task of a tool
        self.strange = []  # frames that are neither
        self.reader = asyncio.create_task(self._read())

    @classmethod
    async def dial(cls, place, token=None, agent=None, host=None, **more):
        """Connects to a ws:// URL, or unix:PATH as WebSocket over the socket; authenticates where a token is given."""
        more.setdefault("max_size", None)
        if place.startswith("unix:"):
            socket = await websockets.unix_connect(place[5:], "ws://localhost/", **more)
        else:
            socket = await websockets.connect(place, **more)
        peer = cls(socket)
        if host is not None:
            await peer.call("session.auth", {"host_token": host})
        elif token is not None:
            await peer.call("session.auth", {"token": token, **({"agent_id": agent} if agent else {})})
        return peer

    async def call(self, method, params=None, timeout=20):
        """The result of a method; raises Refused with the daemon's error."""
        reply = await self.ask({"method": method, "params": {} if params is None else params}, timeout)
        if "error" in reply:
            raise Refused(method, reply["error"])
        return reply["result"]

    async def ask(self, request, timeout=20):
        """Sends a request under an id of its own; the whole reply."""
        number = next(self.ids)
        answer = self.waiting[number] = asyncio.get_running_loop().create_future()
        await self.send({"jsonrpc": "2.0", "id": number, **request})
        return await asyncio.wait_for(answer, timeout)

    async def send(self, message):
        """Sends text as it is, anything else as JSON; raises ConnectionError when the connection is over."""
        try:
            await self.socket.send(message if isinstance(message, (str, bytes)) else json.dumps(message, ensure_ascii=False))
        except websockets.ConnectionClosed as problem:
            raise ConnectionError("the connection is over") from problem

    async def register(self, **tools):
        """Registers tools that this peer serves; their schemas are empty."""
        self.tools.update(tools)
        return await self.call("tools.register", [{"name": name} for name in tools])

    async def submit(self, *actions, timeout=20, **proposal):
        """The result of a proposal with these actions."""
        return await self.call("proposal.submit", {"proposal": {"actions": list(actions), **proposal}}, timeout)

    async def close(self):
        await self.socket.close()
        await asyncio.gather(self.reader, return_exceptions=True)

    async def closed(self, timeout=20):
        """Waits until the connection is over; its close code."""
        await asyncio.wait_for(asyncio.gather(self.reader, return_exceptions=True), timeout)
        return self.socket.close_code

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def _read(self):
        try:
            async for text in self.socket:
                self._take(json.loads(text))
        except websockets.ConnectionClosed:
            pass
        finally:
            for answer in self.waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("the connection is over"))
                    answer.exception()  # looked at: nobody may be waiting
            for task in list(self.working.values()):
                task.cancel()

    def _take(self, message):
        if "method" not in message:
            answer = self.waiting.pop(message.get("id"), None)
            if answer is None:
                self.strange.append(message)
            elif not answer.done():
                answer.set_result(message)
        elif message["method"] == "tools.execute":
            self.requests.append(message)
            task = asyncio.create_task(self._serve(message))
            self.working[message["id"]] = task
            task.add_done_callback(lambda _: self.working.pop(message["id"], None))
        elif message["method"] == "tools.cancel":
            self.cancels.append(message["params"])
        else:
            self.events.put_nowait(message)

    async def _serve(self, request):
        params = request["params"]
        self.ran.append(params["tool"])
        try:
            answer = {"result": await self.tools[params["tool"]](params["parameters"], params)}
        except Exception as problem:  # what a tool raises is its failure
            answer = {"error": {"code": -32000, "message": str(problem)}}
        try:
            await self.send({"jsonrpc": "2.0", "id": request["id"], **answer})
        except ConnectionError:
            pass
