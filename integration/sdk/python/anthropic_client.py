"""Plays the scenes with the package anthropic, its options left as they are."""

import anthropic

from scene import SCHEMA, TOOL, batch, play, run, say, turns

MODEL = "claude-sonnet-4-5"
client = anthropic.Anthropic()


def ask(prompt):
    return {"model": MODEL, "max_tokens": 4096, "messages": [{"role": "user", "content": prompt}]}


def converse(request, call):
    def step():
        message = call(request)
        say("message", message.id, message.stop_reason, message.usage.input_tokens, message.usage.output_tokens)
        request["messages"].append({"role": "assistant", "content": [b.model_dump() for b in message.content]})
        results = [
            {"type": "tool_result", "tool_use_id": b.id, "content": run(b.name, b.input)}
            for b in message.content
            if b.type == "tool_use"
        ]
        if results:
            request["messages"].append({"role": "user", "content": results})
        return bool(results)

    turns(step)


def work(prompt):
    return {**ask(prompt), "tools": [{"name": TOOL, "input_schema": SCHEMA}]}


def streamed(request):
    with client.messages.stream(**request) as stream:
        for text in stream.text_stream:
            say("text", text)
        return stream.get_final_message()


def answer(prompt):
    message = client.messages.create(**ask(prompt))
    return message.id, message.content[0].text


def retry(prompt):
    for status in (429, 500):
        say("answer", *answer(f"{prompt}, but fail once with {status}"))


play(
    conversation=lambda prompt: converse(work(prompt), lambda request: client.messages.create(**request)),
    stream=lambda prompt: converse(work("streamed: " + prompt), streamed),
    count=lambda prompt: say(
        "count",
        client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": prompt}]).input_tokens,
    ),
    models=lambda _: say("models", *[m.id for m in client.models.list()]),
    retry=retry,
    batch=lambda prompt: batch(prompt, answer),
)
