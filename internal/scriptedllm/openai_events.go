package scriptedllm

import "maps"

// An itemEvents sends the events of one output item of the responses API.
type itemEvents struct {
	re    *reply
	item  object // as it is when done
	index int
	emit  func(kind string, o object)
}

func (d responses) stream(re *reply, s *sink) {
	s.begin("text/event-stream; charset=utf-8")
	sequence := 0
	emit := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, sequence
		sequence++
		s.event(kind, o)
	}
	response := d.response(re)
	emit("response.created", object{"response": response})
	emit("response.in_progress", object{"response": response})
	items := d.items(re)
	for i, item := range items {
		ev := itemEvents{re: re, item: item, index: i, emit: emit}
		if item["type"] == "message" {
			ev.message()
		} else {
			ev.call()
		}
	}
	d.complete(re, response, items)
	emit("response."+response["status"].(string), object{"response": response})
}

// send emits an event within the item.
func (ev itemEvents) send(kind string, more object) {
	o := object{"item_id": ev.item["id"], "output_index": ev.index}
	maps.Copy(o, more)
	ev.emit(kind, o)
}

// frame emits output_item.added, with the item as it begins, what happens within, and output_item.done.
func (ev itemEvents) frame(field string, empty any, within func()) {
	begun := maps.Clone(ev.item)
	begun["status"], begun[field] = "in_progress", empty
	ev.emit("response.output_item.added", object{"output_index": ev.index, "item": begun})
	within()
	ev.emit("response.output_item.done", object{"output_index": ev.index, "item": ev.item})
}

func (ev itemEvents) message() {
	text := ev.re.answer.text
	ev.frame("content", []object{}, func() {
		ev.send("response.content_part.added", object{"content_index": 0, "part": textPart("")})
		for piece := range ev.re.textPieces() {
			ev.send("response.output_text.delta", object{"content_index": 0, "delta": piece, "logprobs": []object{}})
		}
		ev.send("response.output_text.done", object{"content_index": 0, "text": text, "logprobs": []object{}})
		ev.send("response.content_part.done", object{"content_index": 0, "part": textPart(text)})
	})
}

func (ev itemEvents) call() {
	arguments, _ := ev.item["arguments"].(string)
	ev.frame("arguments", "", func() {
		for _, piece := range ev.re.pieces(arguments) {
			ev.send("response.function_call_arguments.delta", object{"delta": piece})
		}
		ev.send("response.function_call_arguments.done", object{"arguments": arguments, "name": ev.item["name"]})
	})
}
