package llm

import "github.com/tapedeck-dev/tapedeck/internal/jsonscan"

// ollamaTongue is Ollama's own API. Its messages look like OpenAI's; images stand beside a message's content, and calls have
// objects as arguments and, in older versions, no id.
var ollamaTongue = &tongue{
	protocol: "ollama",
	messages: "messages", top: chatTop, message: func(h *hearing) { ollamaHeard(h) }, event: ollamaEvent,
}

func ollamaHeard(h *hearing) {
	raw := h.s.Raw()
	within(raw, func(s *jsonscan.Scanner) {
		whole := h.s
		h.s = s
		chatHeard(h)
		h.s = whole
	})
	if len(raw) == 0 {
		return
	}
	var images []byte
	within(raw, func(s *jsonscan.Scanner) { _, images = roleAnd(s, "images") })
	within(images, func(s *jsonscan.Scanner) {
		readList(s, func() { h.attach(s.Raw()) })
	})
}

// ollamaEvent reads an answer, or one line of a stream.
func ollamaEvent(a *answering) {
	done, reason := false, ""
	readObject(a.s, func(key []byte) bool {
		switch string(key) {
		case "model":
			a.out.Model = readText(a.s)
		case "message":
			a.chatMessage(a.s.Raw())
		case "response": // of generate
			a.say(textKind)
		case "thinking":
			a.say(thoughtKind)
		case "done":
			done = readTrue(a.s)
		case "done_reason":
			reason = readText(a.s)
		case "error":
			a.failed = a.failed || !isNull(a.s.Raw())
		default:
			return false
		}
		return true
	})
	if done && reason == "" {
		reason = "stop"
	}
	if done {
		a.stop(reason)
	}
}
