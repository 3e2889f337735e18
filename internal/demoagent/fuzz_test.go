package demoagent

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// FuzzReadAnswer checks that no stream brings the agent down, and that what it takes can be sent back.
func FuzzReadAnswer(f *testing.F) {
	f.Add(`data: {"type":"content_block_start","content_block":{"type":"tool_use","name":"x","input":{}}}` + "\n\n" +
		`data: {"type":"content_block_delta","delta":{"partial_json":"{}"}}` + "\n\n" +
		`data: {"type":"content_block_stop"}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		blocks, err := readAnswer(strings.NewReader(stream), io.Discard)
		if err != nil {
			return
		}
		if _, err := json.Marshal(blocks); err != nil {
			t.Errorf("taken, but cannot be sent back: %v", err)
		}
	})
}
