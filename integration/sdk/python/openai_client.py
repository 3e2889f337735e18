"""Plays the scenes with the package openai, its options left as they are."""

import json

import openai

from scene import SCHEMA, TOOL, batch, play, run, say, turns

MODEL = "gpt-4o"
client = openai.OpenAI()


def ask(prompt):
    return {"model": MODEL, "messages": [{"role": "user", "content": prompt}]}


def conversation(prompt):
    request = ask(prompt)
    request["tools"] = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]

    def step():
        completion = client.chat.completions.create(**request)
        message = completion.choices[0].message
        say("completion", completion.id, message.content, completion.usage.total_tokens)
        request["messages"].append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or []:
            content = run(call.function.name, json.loads(call.function.arguments))
            request["messages"].append({"role": "tool", "tool_call_id": call.id, "content": content})
        return bool(message.tool_calls)

    turns(step)


def stream(prompt):
    for chunk in client.chat.completions.create(**ask("streamed: " + prompt), stream=True):
        say("chunk", chunk.id, [c.delta.content for c in chunk.choices])


def responses(prompt):
    response = client.responses.create(model="gpt-5", input=prompt)
    say("response", response.id, response.output_text, response.usage.total_tokens)


def embed(prompt):
    data = client.embeddings.create(model="text-embedding-3-small", input=[prompt, "a second text"]).data
    say("embedding", *[d.embedding for d in data])


def upload(prompt):
    file = client.files.create(file=("prompt.txt", (prompt + "\n").encode()), purpose="user_data")
    say("file", file.id, file.filename, file.bytes)


def answer(prompt):
    completion = client.chat.completions.create(**ask(prompt))
    return completion.id, completion.choices[0].message.content


def retry(prompt):
    for status in (429, 500):
        say("answer", *answer(f"{prompt}, but fail once with {status}"))


play(
    conversation=conversation,
    stream=stream,
    responses=responses,
    embed=embed,
    models=lambda _: say("models", *[m.id for m in client.models.list()]),
    upload=upload,
    retry=retry,
    batch=lambda prompt: batch(prompt, answer),
)
