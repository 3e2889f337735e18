"""A tool that is being served while the daemon is told to stop: its turn is recorded and its reply comes.

Prints "called" when the tool runs, waits for a line, then lets the tool end; prints "ok" when everything came."""
import asyncio
import sys

from cases import call, same
from peer import Peer, Refused


async def main():
    url, token, run = sys.argv[1:]
    peer = await Peer.dial(url, token=token, agent="stopping")

    async def slow(_parameters, _request):
        print("called", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        try:  # the daemon is stopping: it takes nothing new
            await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "late"}]})
        except (Refused, ConnectionError):
            return "done"
        return "late was taken"

    await peer.register(slow=slow)
    await peer.call("runs.start", {"intent": "stop", "idempotency_key": run})
    await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "first"}]})
    result = await peer.submit(call("slow"))
    same(result["results"][0]["output"], "done")
    assert await peer.closed() in (1000, 1001), peer.socket.close_code
    print("ok", flush=True)


asyncio.run(main())
