package foreign

import (
	"fmt"
	"testing"
	"time"
)

// TestManyKeys: a mapping with many keys is built in time that grows with their number, finds each, and refuses one twice.
func TestManyKeys(t *testing.T) {
	const keys = 300_000 // of which a list that is looked through would take minutes
	n, begun := &node{kind: mapNode}, time.Now()
	values := make([]*node, keys)
	for i := range values {
		values[i] = &node{kind: scalarNode}
		if err := n.add(fmt.Sprint("key", i), values[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range values {
		if n.at(fmt.Sprint("key", i)) != values[i] {
			t.Fatalf("key %d is not found", i)
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("%v for %d keys", took, keys)
	}
	for _, key := range []string{"key0", "key63", "key64", "key299999"} {
		if err := n.add(key, nothing); err == nil {
			t.Errorf("%s stands twice", key)
		}
	}
	if n.has("key") {
		t.Error("a key that is not there was found")
	}
}
