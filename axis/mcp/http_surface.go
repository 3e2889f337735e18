package mcp

import "github.com/tapedeck-dev/tapedeck/internal/canonjson"

// withoutIDs takes out of a body, one message or a batch, what each run makes up anew: the ids of messages, and what Surface leaves
// out of params. The value is changed in place.
func withoutIDs(body *canonjson.Value) {
	if body.Kind == canonjson.Array {
		for i := range body.Elems {
			withoutIDs(&body.Elems[i])
		}
		return
	}
	drop(body, "id")
	method, _ := body.Get("method")
	for i := range body.Members {
		m := &body.Members[i]
		switch m.Key {
		case "params":
			dropMadeUp(method.Text(), &m.Value)
		case "result", "error":
			dropMadeUp("", &m.Value)
		}
	}
}
