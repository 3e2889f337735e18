"""The built-in tools of serve --builtin drive_cli --builtin check_outcome --allow cat,false,true,sleep."""
from cases import call, case, main, same


@case
async def drive_cli_turns(scene):
    async with await scene.dial() as peer:
        names = {tool["name"]: tool["source"] for tool in (await peer.call("tools.list"))["tools"]}
        same(sorted(names), ["check_outcome", "drive_cli"])
        run = await scene.start(peer)
        prompt = "say „this“\nas it is"
        output = (await peer.submit(call("drive_cli", command="cat", prompt=prompt)))["results"][0]["output"]
        same((output["stdout"], output["exit_code"], output["timed_out"]), (prompt, 0, False))
        await peer.submit(call("drive_cli", command=["false"], prompt="fail"))
        await peer.submit(call("drive_cli", command=["sleep", "60"], prompt="take long", timeout_ms=100))
        turns = await scene.turns(peer, run)
        same([turn["prompt"] for turn in turns], [prompt, "fail", "take long"])
        same([turn["cli_outcome"] for turn in turns],
             [{"outcome": "exited", "code": 0}, {"outcome": "exited", "code": 1}, {"outcome": "timeout"}])
        same([turn["verifier_verdict"] for turn in turns], ["not_run"] * 3)
        same(turns[0]["output"], output)
        same(peer.requests, [])  # nothing is called back


@case
async def check_outcome_turns(scene):
    async with await scene.dial() as peer:
        run = await scene.start(peer)
        for command in ("true", "false"):
            await peer.submit(call("check_outcome", command=[command]))
        turns = await scene.turns(peer, run)
        same([turn["verifier_verdict"] for turn in turns], ["pass", "fail"])
        same([turn.get("cli_outcome") for turn in turns], [None, None])


@case
async def commands_that_are_not_allowed(scene):
    async with await scene.dial() as peer:
        run = await scene.start(peer)
        for command in ("sh", ["sh", "-c", "true"], "/bin/sh", "../cat", "./cat", "/tmp/cat", "cat;sh", "cat sh", "", [], None, "CAT", ["cat\0sh"]):
            for tool in ("drive_cli", "check_outcome"):
                result = (await peer.submit(call(tool, command=command, prompt="x")))["results"][0]
                assert result["status"] in ("rejected", "failed"), f"{tool} {command!r}: {result}"
                assert not (result["output"] or {}).get("stdout"), result
        await peer.call("policy.register", {"name": "no_cli", "rule": "deny_tool", "target": "drive_cli"})
        same((await peer.submit(call("drive_cli", command="cat", prompt="x")))["results"][0]["status"], "rejected")
        turn = (await scene.turns(peer, run))[-1]
        assert "no_cli" in turn["policy_rejected"]["rule"], turn
        same(turn.get("output"), None)


main()
