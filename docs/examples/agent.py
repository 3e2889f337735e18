"""A small agent: tapedeck serve judges its one tool call, calls the tool back and traces it. Needs websockets alone."""
import asyncio, json, os
import websockets

URL = os.environ.get("TAPEDECK_DAEMON", "ws://127.0.0.1:9100")
BASE = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~/.config")
TOKEN = open(f"{BASE}/tapedeck/daemon-{URL[5:].replace(':', '-')}/token").read().strip()

async def main():
    async with websockets.connect(URL) as daemon:
        async def call(method, params):
            await daemon.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
            while True:
                message = json.loads(await daemon.recv())
                if message.get("method") == "tools.execute":  # the daemon asks for a tool: this is it
                    output = {"text": message["params"]["parameters"]["text"].upper()}
                    await daemon.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": output}))
                elif message.get("id") == method:
                    assert "result" in message, message
                    return message["result"]

        await call("session.auth", {"token": TOKEN, "agent_id": "example"})
        await call("tools.register", [{"name": "shout", "description": "text in capitals"}])
        run = await call("runs.start", {"intent": "show what a trace looks like"})
        action = {"type": "tool_call", "tool": "shout", "parameters": {"text": "hello"}}
        await call("proposal.submit", {"proposal": {"actions": [action]}})
        await call("runs.complete", {"run_id": run["run_id"], "outcome": {"status": "success"}})
        for record in (await call("runs.get_trace", {"run_id": run["run_id"]}))["records"]:
            print(json.dumps(record))

asyncio.run(main())
