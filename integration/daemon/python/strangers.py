"""Who is let in, and what it may see: tokens, the host's role, other agents' runs, browsers, names that are none."""
import json
import os
import socket
import urllib.parse

import websockets

from cases import call, case, main, refused, same
from peer import Peer

AUTH, INVALID, INTERNAL = -32001, -32602, -32603


def handshake(scene, **headers):
    """The status line that the daemon answers an upgrade with these headers, and the names of the answer's headers."""
    url = urllib.parse.urlsplit(scene.url)
    lines = {"Host": url.netloc, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
             "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", **{name.replace("_", "-"): value for name, value in headers.items()}}
    with socket.create_connection((url.hostname, url.port), 20) as conn:
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        conn.sendall(f"GET / HTTP/1.1\r\n{text}\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            part = conn.recv(4096)
            if not part:
                break
            answer += part
    head = answer.split(b"\r\n\r\n")[0].decode().split("\r\n")
    return int(head[0].split()[1]), [line.split(":")[0].lower() for line in head[1:]]


@case
async def no_token(scene):
    if scene.token is None:  # of a daemon with --no-auth any is good
        async with await Peer.dial(scene.url) as peer:
            same((await peer.call("tools.list"))["count"], 0)
            same(await peer.call("session.auth", {"token": "any"}), {"ok": True, "auth_enabled": False})
            same((await peer.call("tools.list"))["count"], 0)
        return
    for method, params in (("tools.list", {}), ("runs.start", {"intent": "x", "agent_id": "a"}), ("no.such", {}),
                           ("server.handshake", {"protocol_version": 3}), ("runs.list", {"agent_id": "a"})):
        peer = await Peer.dial(scene.url)
        problem = await refused(peer.call(method, params), AUTH)
        assert problem.message.startswith("auth required"), problem
        await peer.closed()
    peer = await Peer.dial(scene.url)
    await peer.send({"jsonrpc": "2.0", "method": "state.set", "params": {"key": "k"}})  # a notification closes, too
    await peer.closed()


@case
async def wrong_tokens(scene):
    if scene.token is None:
        return
    wrong = ["", "x", scene.token[:-1], scene.token + "x", scene.token + "\n", scene.token.swapcase(), scene.host, "a" * 10000,
             None, 1, True, [scene.token], {"token": scene.token}]
    for token in wrong:
        async with await Peer.dial(scene.url) as peer:
            await refused(peer.call("session.auth", {"token": token}), INTERNAL, INVALID, AUTH)
            await refused(peer.call("session.auth", {"host_token": scene.token if token == scene.host else token}), INTERNAL, INVALID, AUTH)
            await refused(peer.call("session.auth", {}), INTERNAL, INVALID, AUTH)
            same(await peer.call("session.auth", {"token": scene.token}), {"ok": True, "auth_enabled": True})
            await peer.call("tools.list")
    peer = await Peer.dial(scene.url)
    try:
        for guess in range(1000):
            await refused(peer.call("session.auth", {"token": f"guess {guess}"}))
        raise AssertionError("1,000 wrong tokens on one connection")
    except ConnectionError:
        await peer.closed()
    peer = await Peer.dial(scene.url)
    await refused(peer.call("session.auth", {"token": "wrong"}))
    await refused(peer.call("tools.list"), AUTH)
    await peer.closed()


@case
async def the_bound_agent(scene):
    if scene.token is None:
        return
    async with await Peer.dial(scene.url) as peer:
        same(await peer.call("session.auth", {"token": scene.token, "agent_id": scene.agent}),
             {"ok": True, "auth_enabled": True, "agent_id": scene.agent})
        same((await peer.call("runs.start", {"intent": "x"}))["agent_id"], scene.agent)
        await refused(peer.call("runs.start", {"intent": "x", "agent_id": scene.agent + "-other"}))
        await refused(peer.call("runs.list", {"agent_id": scene.agent + "-other"}))
    assert not os.path.exists(os.path.join(scene.data, "runs", scene.agent + "-other"))


@case
async def pipelined_auth(scene):
    """What follows session.auth without waiting for its reply is not refused."""
    if scene.token is None:
        return
    for _ in range(20):
        async with await Peer.dial(scene.url) as peer:
            await peer.send({"jsonrpc": "2.0", "id": "auth", "method": "session.auth", "params": {"token": scene.token}})
            await peer.call("server.handshake", {"protocol_version": 3})


@case
async def the_host_reads_and_writes_nothing(scene):
    if scene.host is None:
        return
    async with await scene.dial() as owner:
        run = await scene.start(owner)
        await owner.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t"}]})
        async with await Peer.dial(scene.url) as host:
            same(await host.call("session.auth", {"host_token": scene.host}), {"ok": True, "auth_enabled": True, "role": "host"})
            same((await host.call("runs.get_trace", {"run_id": run}))["records"], scene.lines(run))
            same(len((await host.call("runs.subscribe", {"run_id": run}))["turns_so_far"]), 1)
            same(len((await host.call("runs.list", {"agent_id": scene.agent}))["runs"]), 1)
            dropped = await host.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t"}]})
            same((dropped["ok"], dropped["dropped"]), (False, "run_not_found"))
            await refused(host.call("runs.complete", {"run_id": run, "outcome": {"status": "done"}}))
            await refused(host.call("runs.start", {"intent": "x", "agent_id": scene.agent}))
            await refused(host.call("runs.start", {"intent": "x", "agent_id": scene.agent, "idempotency_key": run}))
            await owner.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "live"}]})
            same((await host.events.get())["params"]["record"]["tool"], "live")
        same(len(scene.lines(run)), 3)


@case
async def the_run_of_another_does_not_exist(scene):
    """Every answer about another agent's run is that about a run that never was, byte for byte but for the name."""
    async with await scene.dial() as owner, await scene.dial(scene.agent + "-thief") as thief:
        run = await scene.start(owner)
        if scene.token is None:  # who has no run and no name reads all: have both
            await thief.call("session.auth", {"token": "x", "agent_id": scene.agent + "-thief"})
        outcome = {"status": "done"}
        for method, params in (("runs.get_trace", {}), ("runs.subscribe", {}), ("runs.unsubscribe", {}),
                               ("runs.complete", {"outcome": outcome}), ("runs.record_turns", {"turns": [{"tool": "t"}]}),
                               ("runs.verdicts", {}), ("policy.check", {"tool": "t"})):
            answers = []
            for name in (run, "never-was"):
                reply = await thief.ask({"method": method, "params": {"run_id": name, **params}})
                reply.pop("id")
                answers.append(json.dumps(reply).replace(name, "NAME"))
            same(answers[0], answers[1], method)
        problem = await refused(thief.call("runs.start", {"intent": "x", "idempotency_key": run, "agent_id": scene.agent + "-thief"}))
        for secret in (scene.agent + '"', "a test"):
            assert secret not in str(problem), problem
        await refused(thief.call("runs.list", {"agent_id": scene.agent}))
        same([record["record"] for record in scene.lines(run)], ["started"])


@case
async def browsers_and_rebound_names(scene):
    if scene.url.startswith("unix:"):
        return
    url = urllib.parse.urlsplit(scene.url)
    own = f"http://{url.netloc}"
    same(handshake(scene)[0], 101)
    same(handshake(scene, Origin=own)[0], 101)
    for origin in ("http://evil.example", "null", "file://", own + ".evil.example", f"http://{url.hostname}:1", ""):
        status, _ = handshake(scene, Origin=origin)
        assert status == 403 or origin == "", f"Origin {origin!r}: {status}"
    for host in ("evil.example", f"evil.example:{url.port}", f"127.0.0.1.evil.example:{url.port}", f"{url.hostname}:1",
                 f"{url.hostname}@evil.example:{url.port}", f"0.0.0.0.nip.io:{url.port}", ""):
        status, _ = handshake(scene, Host=host)
        assert status in (400, 403, 421), f"Host {host!r}: {status}"
    same(handshake(scene, Host=f"localhost:{url.port}")[0], 101)
    for origin in ("http://evil.example", "null"):
        try:
            async with websockets.connect(scene.url, origin=origin):
                raise AssertionError(f"let in with Origin {origin}")
        except (websockets.InvalidHandshake, websockets.InvalidMessage):
            pass
    for headers in ({"Upgrade": None}, {"Sec_WebSocket_Version": "12"}, {"Sec_WebSocket_Key": "short"}, {"Connection": "close"}):
        status, _ = handshake(scene, **headers)
        assert 400 <= status < 500, f"{headers}: {status}"
    status, names = handshake(scene, Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits")
    same(status, 101)
    assert "sec-websocket-extensions" not in names, names


NO_NAMES = ["..", ".", "../x", "../../etc/passwd", "a/../b", "a/b", "a\\b", "/etc/passwd", "%2e%2e%2fx", "%2e", "..%2f", "a\x00b",
            "\x00", "a" * 129, "a" * 10000, "ａ", "аdmin", "a\u202eb", "a\u200bb", "é", "e\u0301", " a", "a ", "a\n", "a\tb", "-a", ".a",
            "_a", ":a", "~", "a~b", "a*", "a?b", "a\"b", "C:\\x", "\u2025", "a\u2044b", "nul\x7f"]


def tree(scene):
    """Every path below the runs, and whatever stands beside the data directory."""
    found = set(os.listdir(os.path.dirname(scene.data)))
    for base, directories, files in os.walk(os.path.join(scene.data, "runs")):
        found.update(os.path.join(base, name) for name in directories + files)
    return found


@case
async def names_that_are_none(scene):
    async with await scene.dial() as peer:
        await scene.start(peer)  # the directory of the agent is there
        before = tree(scene)
        for name in NO_NAMES:
            await refused(peer.call("runs.start", {"intent": "x", "agent_id": scene.agent, "idempotency_key": name}), INVALID, INTERNAL)
            await refused(peer.call("runs.start", {"intent": "x", "agent_id": name}), INVALID, INTERNAL)
            await refused(peer.call("runs.list", {"agent_id": name}), INVALID, INTERNAL)
            await refused(peer.call("runs.complete", {"run_id": name, "outcome": {"status": "done"}}), INVALID, INTERNAL)
            await refused(peer.call("runs.subscribe", {"run_id": name}), INVALID, INTERNAL)
            for method, params in (("runs.get_trace", {}), ("runs.record_turns", {"turns": [{"tool": "t"}]})):
                reply = await peer.ask({"method": method, "params": {"run_id": name, **params}})
                result = reply.get("result", {"not_found": True})
                assert result.get("not_found") or result.get("dropped") == "run_not_found", f"{method} {name!r}: {reply}"
            async with await Peer.dial(scene.url) as other:
                await refused(other.call("session.auth", {"token": scene.token or "x", "agent_id": name}), INVALID, INTERNAL)
        for wrong in (None, 1, True, [], {}, ["a"]):
            for method, params in (("runs.complete", {"outcome": {"status": "done"}}), ("runs.get_trace", {}), ("runs.subscribe", {})):
                await refused(peer.call(method, {"run_id": wrong, **params}), INVALID)
        same(tree(scene) - before, set())


@case
async def names_of_agents_become_slugs(scene):
    if scene.token is not None:
        return
    for name in ("../../etc", "a/b", "%2e%2e", "日本", "\x00", "x" * 10000, "name:x", "…"):
        async with await Peer.dial(scene.url) as peer:
            reply = await peer.ask({"method": "runs.start", "params": {"intent": "x", "agent_name": name}})
            if "result" in reply:
                agent = reply["result"]["agent_id"]
                assert agent.startswith("name:") and agent.isascii() and len(agent) <= 128 and "/" not in agent and ".." not in agent, agent
                same(len(scene.lines(reply["result"]["run_id"], agent)), 1)
    async with await Peer.dial(scene.url) as peer:
        await refused(peer.call("runs.start", {"intent": "x"}), INVALID, INTERNAL)


@case
async def the_connections_tools_are_its_own(scene):
    async with await scene.dial() as one, await scene.dial() as other:
        async def tool(_parameters, _request):
            return "one"
        await one.register(mine=tool)
        same((await other.call("tools.list"))["count"], 0)
        same((await other.submit(call("mine")))["results"][0]["status"], "rejected")
        same(one.ran, [])


main()
