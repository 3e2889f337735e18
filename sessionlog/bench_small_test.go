package sessionlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// BenchmarkReadShort is BenchmarkRead of a log of short lines, as kernels write them.
func BenchmarkReadShort(b *testing.B) {
	var log []byte
	for i := range 20_000 {
		log = fmt.Appendf(log, `{"seq":%d,"event":{"kind":"tool_gated","turn":%d,"category":"syscall","call_id":"call_%d","tool":"read","reason":"ask_user"}}`+"\n", i, i/10, i)
	}
	compare(b, log, func() error {
		for _, err := range NewReader(bytes.NewReader(log), "bench", nil).Entries() {
			if err != nil {
				return err
			}
		}
		return nil
	}, func(line []byte) error { return json.Unmarshal(line, new(stdEntry)) })
}
