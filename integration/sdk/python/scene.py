"""What the Python clients share, as package scene does for those in Go: flags, the order of scenes, the one tool."""

import argparse
import concurrent.futures
import json
import os
import sys

TOOL = "write_file"
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}


def play(**scenes):
    """Runs the scenes that --scenes names, all by default."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--prompt", default="write hello.txt with the text marigold")
    flags.add_argument("--scenes", default=",".join(scenes))
    flags = flags.parse_args()
    for name in flags.scenes.split(","):
        print("==", name)
        try:
            scenes[name](flags.prompt)
        except Exception as err:  # whatever the SDK raises ends the program
            print(f"{name}: {err}", file=sys.stderr)
            sys.exit(1)


def say(name, *values):
    """Prints facts of an answer as JSON, which shows every character."""
    print(name + ":", json.dumps(values, sort_keys=True))


def batch(prompt, call):
    """Makes eight calls side by side and prints what came in the order of the prompts."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for answer in pool.map(call, [f"{prompt}, part {i + 1}" for i in range(8)]):
            say("answer", *answer)


def run(name, args):
    """Runs the one tool, which writes a file, and returns what the model is told."""
    say("tool " + name, args)
    if name != TOOL or os.path.isabs(args["path"]) or ".." in args["path"]:
        raise ValueError(f"the model called {name} for {args['path']}, want {TOOL} for a local path")
    with open(args["path"], "w", encoding="utf-8") as file:
        file.write(args["content"])
    return f"wrote {len(args['content'].encode())} bytes"


def turns(step):
    """Bounds a conversation: step makes one call and returns whether the model wants another."""
    for _ in range(6):
        if not step():
            return
    raise RuntimeError("the model calls tools for ever")
