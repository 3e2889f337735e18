import asyncio, json, os, sys
import websockets

url = os.environ.get("TAPEDECK_DAEMON", "ws://127.0.0.1:9100")
base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
token_file = f"{base}/tapedeck/daemon-{url.removeprefix('ws://').replace(':', '-')}/token"


async def main():
    async with websockets.connect(url, max_size=None) as ws:
        async def call(method, params):
            await ws.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
            while True:
                msg = json.loads(await ws.recv())
                if msg.get("method") == "tools.execute":  # the daemon calls our tool back
                    with open(msg["params"]["parameters"]["path"]) as f:
                        reply = {"lines": len(f.readlines())}
                    await ws.send(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": reply}))
                elif msg.get("id") == method:
                    return msg["result"] if "result" in msg else sys.exit(f"{method}: {msg['error']}")

        def count(path):
            return {"type": "tool_call", "tool": "count", "parameters": {"path": path}, "failure_behavior": "skip"}

        await call("session.auth", {"token": open(token_file).read().strip(), "agent_id": "counter"})
        await call("tools.register", [{"name": "count", "parameters": {"type": "object", "required": ["path"]}}])
        await call("policy.register", {"name": "no_keys", "rule": "deny_tool_param", "target": "count", "key": "path", "pattern": ".ssh"})
        run = await call("runs.start", {"intent": "count lines"})
        await call("proposal.submit", {"proposal": {"actions": [count("/etc/hosts"), count("/root/.ssh/id_rsa")]}})
        await call("runs.complete", {"run_id": run["run_id"], "outcome": {"status": "success", "summary": "Counted."}})
        for record in (await call("runs.get_trace", {"run_id": run["run_id"]}))["records"]:
            print(json.dumps(record))


asyncio.run(main())
