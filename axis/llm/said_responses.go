package llm

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// responsesTongue is OpenAI's Responses API. An item that has a call_id is a call of a tool that the program runs, or its
// result; other calls (web_search_call, code_interpreter_call, mcp_call, …) ran at the provider.
var responsesTongue = &tongue{
	protocol: "openai-responses",
	messages: "input", top: responsesTop, message: func(h *hearing) { responsesHeard(h) }, event: responsesEvent,
}

// realtimeTongue is the Realtime API, whose items and events are those of Responses, and more of them.
var realtimeTongue = &tongue{
	protocol: "openai-realtime",
	messages: "input", top: responsesTop, message: func(h *hearing) { responsesHeard(h) }, event: responsesEvent,
}

func responsesTop(h *hearing, key []byte) bool {
	switch string(key) {
	case "instructions":
		h.top.system = readText(h.s)
	case "previous_response_id":
		h.top.follows = readText(h.s)
	case foldedKey:
		h.top.follows = followedIn(h.s.Raw())
	case "tools":
		readList(h.s, func() {
			kind, _ := partOf(h.s.Raw())
			h.top.tools = h.top.tools || !ranByOpenAI(kind)
		})
	default:
		return false
	}
	return true
}

// followedIn returns the answer that a folded request went on from.
func followedIn(folded []byte) (id string) {
	within(objectAt(folded, "sent"), func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			if string(key) != "previous_response_id" {
				return false
			}
			id = readText(s)
			return true
		})
	})
	return id
}

// ranByOpenAI reports whether tools of a type run at the provider.
func ranByOpenAI(kind string) bool {
	switch kind {
	case "file_search", "code_interpreter", "mcp", "image_generation":
		return true
	}
	return strings.HasPrefix(kind, "web_search")
}

// responsesEntry is one item of an input or an output.
type responsesEntry struct {
	kind, role, id, name  string
	content, output, args []byte // args are arguments or the action
	input                 []byte // of a custom tool
	summary               []byte
	failed                bool
}

func (it *responsesEntry) read(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "type":
			it.kind = readText(s)
		case "role":
			it.role = readText(s)
		case "call_id":
			it.id = readText(s)
		case "name":
			it.name = readText(s)
		case "content":
			it.content = s.Raw()
		case "output":
			it.output = s.Raw()
		case "arguments", "action", "operation":
			it.args = s.Raw()
		case "input":
			it.input = s.Raw()
		case "summary":
			it.summary = s.Raw()
		case "status":
			status := readText(s)
			it.failed = status == "failed"
		default:
			return false
		}
		return true
	})
}

// isCall and isResult tell what a program has to do with an item.
func (it *responsesEntry) isCall() bool { return it.id != "" && strings.HasSuffix(it.kind, "_call") }
func (it *responsesEntry) isResult() bool {
	return it.id != "" && strings.HasSuffix(it.kind, "_output")
}

// block returns the call that an item is. A call without a name is called by its type: local_shell, apply_patch.
func (it *responsesEntry) block() *block {
	b := &block{kind: callKind, id: it.id, name: it.name}
	if b.name == "" {
		b.name = strings.TrimSuffix(it.kind, "_call")
	}
	switch {
	case isText(it.args):
		b.text = []byte(textIn(it.args))
	case it.args != nil:
		b.args = objectArguments(it.args)
	case isText(it.input):
		b.free, b.text = true, []byte(textIn(it.input))
	}
	return b
}

func responsesHeard(h *hearing) {
	var it responsesEntry
	it.read(h.s)
	switch {
	case it.isResult():
		h.begin(RoleTool)
		h.result(sessionlog.ToolResult{CallID: it.id, Output: outputOf(it.output), IsError: it.failed}, "")
	case it.isCall():
		h.begin(RoleAssistant)
		h.call(it.block().call())
	case it.role != "":
		h.begin(it.role)
		h.parts(it.content)
	default: // reasoning, references, what the provider did itself
		h.begin(RoleAssistant)
	}
}

// responsesEvent reads a whole response, or one event of a stream.
func responsesEvent(a *answering) {
	var kind, itemID, status string
	var item, response, delta, output []byte
	readObject(a.s, func(key []byte) bool {
		switch string(key) {
		case "type":
			kind = readText(a.s)
		case "item_id":
			itemID = readText(a.s)
		case "item":
			item = a.s.Raw()
		case "response":
			response = a.s.Raw()
		case "delta":
			delta = a.s.Raw()
		case "output":
			output = a.s.Raw()
		case "status":
			status = readText(a.s)
		case "id":
			a.out.ID = readText(a.s)
		case "model":
			a.out.Model = readText(a.s)
		case "error":
			a.failed = a.failed || !isNull(a.s.Raw())
		default:
			return false
		}
		return true
	})
	if kind == "" { // the response itself
		a.responsesOutput(output)
		a.responsesStatus(status)
		return
	}
	switch kind {
	case "response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed", "response.done":
		if len(response) > 0 {
			whole := a.s
			within(response, func(s *jsonscan.Scanner) {
				a.s = s
				responsesEvent(a)
			})
			a.s = whole
		}
	case "response.output_item.added":
		a.responsesAdd(item)
	case "response.output_item.done":
		a.responsesDone(item)
	case "response.output_text.delta", "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.refusal.delta",
		"response.output_audio_transcript.delta", "response.audio_transcript.delta", "response.text.delta":
		if b := a.block(itemID); b != nil && itemID != "" {
			b.text = append(b.text, textIn(delta)...)
		}
	case "error":
		a.failed = true
	}
}

func (a *answering) responsesStatus(status string) {
	switch status {
	case "completed", "incomplete":
		a.stop(status)
	case "failed", "cancelled":
		a.failed = true
	}
}

// responsesOutput takes the items of a whole response, which stand for those that a stream brought before.
func (a *answering) responsesOutput(output []byte) {
	if output == nil || emptyList(output) {
		return
	}
	a.blocks = nil
	within(output, func(s *jsonscan.Scanner) {
		readList(s, func() { a.responsesEntry(s.Raw()) })
	})
}

// responsesAdd begins an item of a stream: its deltas go to one block, until the item is done.
func (a *answering) responsesAdd(raw []byte) {
	var it responsesEntry
	id := ""
	within(raw, it.read)
	within(raw, func(s *jsonscan.Scanner) { id = idOf(s) })
	switch {
	case it.isCall():
		b := it.block()
		b.key, b.text = id, nil
		a.put(b)
	case it.kind == "reasoning":
		a.add(thoughtKind, id)
	case it.kind == "message":
		a.add(textKind, id)
	}
}

// responsesDone puts an item in the place of what its deltas said.
func (a *answering) responsesDone(raw []byte) {
	id := ""
	within(raw, func(s *jsonscan.Scanner) { id = idOf(s) })
	b := a.block(id)
	if b == nil || id == "" {
		a.responsesEntry(raw)
		return
	}
	before := a.blocks
	a.blocks = nil
	a.responsesEntry(raw)
	b.done, b.parts = true, a.blocks
	a.blocks = before
}

// idOf reads the id of an object.
func idOf(s *jsonscan.Scanner) (id string) {
	readObject(s, func(key []byte) bool {
		if string(key) != "id" {
			return false
		}
		id = readText(s)
		return true
	})
	return id
}

// responsesEntry adds an item of an output.
func (a *answering) responsesEntry(raw []byte) {
	var it responsesEntry
	within(raw, it.read)
	switch {
	case it.isCall():
		a.put(it.block())
	case it.kind == "reasoning":
		b := a.add(thoughtKind, "")
		b.raw = raw
		within(it.summary, func(s *jsonscan.Scanner) { b.text = append(b.text, joinTexts(s)...) })
		if len(b.text) == 0 {
			within(it.content, func(s *jsonscan.Scanner) { b.text = append(b.text, joinTexts(s)...) })
		}
	case it.kind == "message":
		within(it.content, func(s *jsonscan.Scanner) {
			readList(s, func() { a.responsesPart(s.Raw()) })
		})
	default:
		a.other(raw)
	}
}

// responsesPart adds a part of a message.
func (a *answering) responsesPart(raw []byte) {
	kind, text := partOf(raw)
	switch kind {
	case "output_text", "text", "output_audio", "audio":
		b := a.add(textKind, "")
		b.text = []byte(text)
		within(raw, func(s *jsonscan.Scanner) {
			readObject(s, func(key []byte) bool {
				if string(key) != "annotations" {
					return false
				}
				readList(s, func() { b.marks = append(b.marks, s.Raw()) })
				return true
			})
		})
	case "refusal":
		b := a.add(refusalKind, "")
		b.text = []byte(text)
	default:
		a.other(raw)
	}
}
