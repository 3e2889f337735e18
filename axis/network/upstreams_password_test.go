package network

import (
	"strings"
	"testing"
)

// TestUpstreamsTellNoPassword: an entry that is none is told without what stands before its host.
func TestUpstreamsTellNoPassword(t *testing.T) {
	for name, url := range map[string]string{
		"a.test": "ftp://ann:hunter2@host/", "b.test": "http://ann:hunter2@host:bad/", "c.test": "ann:hunter2@host",
		"e.test": "http://ann:hunter2@host/?q", "f.test": "http://ann:hunter2@host:/", "g.test": "http://ann:hunter2@:80",
	} {
		err := CheckUpstreams(map[string]string{name: url})
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ann") {
			t.Errorf("%s=%s: %v", name, url, err)
		}
	}
}
