package llm

import (
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A conversation that the server keeps (previous_response_id) sends only what is new, so each of its requests opens a
// lane of its own.
var responsesKeys = &keys{
	messages: "input",
	surface: []string{
		"instructions", "tools", "tool_choice", "reasoning", "previous_response_id", "conversation", "prompt",
	},
	ignored: openAIIgnored,
}

// responsesSocketKeys are those of a turn over a WebSocket: previous_response_id counts where the answer that it names did not
// pass on the same one.
var responsesSocketKeys = &keys{
	messages: responsesKeys.messages,
	surface:  responsesKeys.surface,
	ignored: ignoring(openAIIgnored,
		exempt{"stream", "every turn over a WebSocket is a stream"},
		exempt{foldedKey, "Tapedeck's own: what of the request was sent"},
	),
}

// responsesWarmUp is the endpoint of a turn in which nothing is generated: it has an id that the next one goes on from.
const responsesWarmUp = "responses.ws.warmup"

// responsesWarmUpKeys are those of such a turn. Its tools do not count: an agent warms up beside the start of its tool servers, and
// declares those that are ready by then. The next turn has them all.
var responsesWarmUpKeys = &keys{
	messages: responsesSocketKeys.messages,
	surface:  slices.DeleteFunc(slices.Clone(responsesSocketKeys.surface), func(key string) bool { return key == "tools" }),
	ignored: ignoring(responsesSocketKeys.ignored,
		exempt{"tools", "those of the tool servers that are ready by then; the next turn declares all"}),
}

// readWarmUp takes a body apart that asks for no answer.
func readWarmUp(body *canonjson.Value, k *keys) (call, bool) {
	generate := get(body, "generate")
	if generate == nil || generate.Kind != canonjson.Bool || generate.Bool {
		return call{}, false
	}
	return readResponsesSocket(body, k)
}

// readResponsesSocket takes the request of a turn over a WebSocket apart.
func readResponsesSocket(body *canonjson.Value, k *keys) (call, bool) {
	at(body, "input", func(input *canonjson.Value) {
		each(input, func(item *canonjson.Value) {
			at(item, "internal_chat_message_metadata_passthrough", func(v *canonjson.Value) { drop(v, "turn_id", "create_time") })
		})
	})
	return readResponses(body, k)
}

// readResponses takes a body apart that has input or a prompt of the dashboard, or goes on with a kept conversation.
func readResponses(body *canonjson.Value, k *keys) (call, bool) {
	input := get(body, "input")
	if input == nil {
		if get(body, "prompt") == nil && get(body, "previous_response_id") == nil {
			return call{}, false
		}
		none := array()
		input = &none
	}
	if input.Kind == canonjson.String {
		*input = array(object(field("role", text("user")), field("content", *input)))
	}
	if input.Kind != canonjson.Array {
		return call{}, false
	}
	var ids pairs
	each(input, func(item *canonjson.Value) { responsesItem(item, &ids) })
	return k.take(body, input, call{
		systemKey: "instructions", systemMessages: withRole(input, "system", "developer"), user: firstRole(input, "user"),
	})
}

// responsesItem takes the provider's own ids and sealed reasoning off an item.
func responsesItem(item *canonjson.Value, ids *pairs) {
	if item.Kind != canonjson.Object || member(item, "type") == "item_reference" {
		return // the id of a reference is all that it has
	}
	drop(item, "id", "status", "encrypted_content")
	ids.number(item, "call_id")
	role := member(item, "role")
	if role == "" {
		return
	}
	if get(item, "type") == nil {
		put(item, "type", text("message"))
	}
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	at(item, "content", func(content *canonjson.Value) {
		listed(content, kind)
		each(content, func(part *canonjson.Value) { drop(part, "annotations", "logprobs") })
	})
}

// responsesProtocol is OpenAI's Responses API. An item that has a call_id is a call of a tool that the program runs, or its
// result; other calls (web_search_call, code_interpreter_call, mcp_call, …) ran at the provider.
var responsesProtocol = &protocol{
	name: "openai-responses", messages: "input",
	event: responsesEvent,
	whole: responsesWhole, stream: responsesStream, framing: &namedEvents,
	putSystem: putInstructions,
}

// putInstructions sets the system text: that of the request, or else that of the messages that begin it.
func putInstructions(body *canonjson.Value, s string) {
	if input := list(body, "input"); input != nil && get(body, "instructions") == nil && putLeading(input, s) {
		return
	}
	put(body, "instructions", text(s))
}

// responsesEvent reads a whole response, or one event of a stream.
func responsesEvent(a *answering, e *event) {
	switch e.Kind {
	case "": // the response itself
		responsesOutput(a, elements(e.Output), e.Status)
	case "response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed", "response.done":
		a.read(responsesEvent, e.Response)
	case "response.output_item.added":
		responsesItemBegins(a, e.Item)
	case "response.output_item.done":
		responsesItemDone(a, e.Item)
	case "response.output_text.delta", "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.refusal.delta",
		"response.output_audio_transcript.delta", "response.audio_transcript.delta", "response.text.delta":
		if b := a.keyed[blockKey(e.ItemID)]; b != nil {
			b.text = append(b.text, textIn(e.Delta)...)
		}
	}
}

// responsesOutput takes the items of a whole response, which stand for those that a stream brought before.
func responsesOutput(a *answering, items [][]byte, status string) {
	if len(items) > 0 {
		a.blocks = nil
	}
	for _, item := range items {
		a.blocks = append(a.blocks, itemBlocks(item)...)
	}
	switch status {
	case "completed", "incomplete":
		a.stop(status)
	case "failed", "cancelled":
		a.failed = true
	}
}

// responsesItemBegins begins an item of a stream: its deltas go to one block, until the item is done.
func responsesItemBegins(a *answering, raw []byte) {
	n := nodeOf(raw)
	switch b := n.block(); {
	case b.kind == callKind:
		b.key, b.text = blockKey(n.ID), nil
		a.put(b)
	case b.kind == thoughtKind:
		a.put(&block{kind: thoughtKind, key: blockKey(n.ID)})
	case n.Kind == "message":
		a.put(&block{kind: textKind, key: blockKey(n.ID)})
	}
}

// responsesItemDone puts an item in the place of what its deltas said.
func responsesItemDone(a *answering, raw []byte) {
	n := nodeOf(raw)
	b := a.keyed[blockKey(n.ID)]
	if b == nil {
		b = new(block)
		a.put(b)
	}
	b.done, b.parts = true, itemBlocks(raw)
}

// itemBlocks returns the blocks of an item of an output.
func itemBlocks(raw []byte) (blocks []*block) {
	n := nodeOf(raw)
	if n.Kind != "message" {
		return []*block{n.block()}
	}
	for _, part := range elements(n.Content) {
		blocks = append(blocks, partOf(part))
	}
	return blocks
}

// idIn returns the id of an object.
func idIn(raw []byte) string {
	n := nodeOf(raw)
	return n.ID
}

// responsesWhole is https://platform.openai.com/docs/api-reference/responses.
func responsesWhole(r *Reply) wireObject {
	out := responsesBegun(r)
	responsesComplete(r, out, responsesItems(r))
	return out
}

// responsesBegun is a response that has only begun.
func responsesBegun(r *Reply) wireObject {
	return wireObject{
		"id": r.IDs.Fresh("resp_", Hexits, 48), "object": "response", "created_at": r.IDs.Now().Unix(),
		"status": "in_progress", "background": false, "error": nil, "incomplete_details": nil, "instructions": nil,
		"max_output_tokens": nil, "model": r.Model, "output": []wireObject{}, "parallel_tool_calls": true,
		"previous_response_id": nil, "reasoning": wireObject{"effort": nil, "summary": nil}, "service_tier": "default",
		"store": false, "temperature": 1.0, "text": wireObject{"format": wireObject{"type": "text"}}, "tool_choice": "auto",
		"tools": []wireObject{}, "top_p": 1.0, "truncation": "disabled", "usage": nil, "user": nil, "metadata": wireObject{},
	}
}

func responsesComplete(r *Reply, response wireObject, items []wireObject) {
	response["status"] = "completed"
	if r.stop() == StopLength {
		response["status"], response["incomplete_details"] = "incomplete", wireObject{"reason": "max_output_tokens"}
	}
	response["output"] = items
	response["usage"] = wireObject{
		"input_tokens": r.InputTokens, "input_tokens_details": wireObject{"cached_tokens": 0},
		"output_tokens": r.OutputTokens, "output_tokens_details": wireObject{"reasoning_tokens": 0},
		"total_tokens": r.InputTokens + r.OutputTokens,
	}
}

// responsesItems returns the finished output: a message, function calls, or both.
func responsesItems(r *Reply) []wireObject {
	out := []wireObject{}
	if r.Text != "" {
		out = append(out, wireObject{
			"id": r.IDs.Fresh("msg_", Hexits, 48), "type": "message", "status": "completed", "role": "assistant",
			"content": []wireObject{outputText(r.Text)},
		})
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		item := wireObject{
			"id": r.IDs.Fresh("fc_", Hexits, 48), "type": "function_call", "status": "completed",
			"call_id": r.callID(c, "call_", 24), "name": c.Name, "arguments": c.text(),
		}
		if c.Space != "" {
			item["namespace"] = c.Space
		}
		out = append(out, item)
	}
	return out
}

func outputText(text string) wireObject {
	return wireObject{"type": "output_text", "annotations": []wireObject{}, "logprobs": []wireObject{}, "text": text}
}

// responsesStream is https://platform.openai.com/docs/api-reference/responses-streaming.
func responsesStream(r *Reply, emit func(string, wireObject)) {
	sequence := 0
	send := func(kind string, o wireObject) {
		o["type"], o["sequence_number"] = kind, sequence
		sequence++
		emit(kind, o)
	}
	response := responsesBegun(r)
	send("response.created", wireObject{"response": response})
	if !r.Silent {
		send("response.in_progress", wireObject{"response": response})
	}
	items := responsesItems(r)
	for i, item := range items {
		itemEvents{r: r, item: item, index: i, emit: send}.all()
	}
	responsesComplete(r, response, items)
	send("response."+response["status"].(string), wireObject{"response": response})
}

// itemEvents sends the events of one output item.
type itemEvents struct {
	r     *Reply
	item  wireObject // as it is when done
	index int
	emit  func(kind string, o wireObject)
}

func (ev itemEvents) all() {
	if ev.item["type"] == "message" {
		ev.message()
	} else {
		ev.call()
	}
}

// send emits an event within the item.
func (ev itemEvents) send(kind string, more wireObject) {
	o := wireObject{"item_id": ev.item["id"], "output_index": ev.index}
	maps.Copy(o, more)
	ev.emit(kind, o)
}

// frame emits output_item.added, with the item as it begins, what happens within, and output_item.done.
func (ev itemEvents) frame(field string, empty any, within func()) {
	begun := maps.Clone(ev.item)
	begun["status"], begun[field] = "in_progress", empty
	ev.emit("response.output_item.added", wireObject{"output_index": ev.index, "item": begun})
	within()
	ev.emit("response.output_item.done", wireObject{"output_index": ev.index, "item": ev.item})
}

func (ev itemEvents) message() {
	ev.frame("content", []wireObject{}, func() {
		ev.send("response.content_part.added", wireObject{"content_index": 0, "part": outputText("")})
		for piece := range ev.r.textPieces() {
			ev.send("response.output_text.delta", wireObject{"content_index": 0, "delta": piece, "logprobs": []wireObject{}})
		}
		ev.send("response.output_text.done", wireObject{"content_index": 0, "text": ev.r.Text, "logprobs": []wireObject{}})
		ev.send("response.content_part.done", wireObject{"content_index": 0, "part": outputText(ev.r.Text)})
	})
}

func (ev itemEvents) call() {
	arguments, _ := ev.item["arguments"].(string)
	ev.frame("arguments", "", func() {
		for _, piece := range ev.r.pieces(arguments) {
			ev.send("response.function_call_arguments.delta", wireObject{"delta": piece})
		}
		ev.send("response.function_call_arguments.done", wireObject{"arguments": arguments, "name": ev.item["name"]})
	})
}
