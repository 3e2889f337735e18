package main

import (
	"bytes"
	"errors"
	"testing"
)

// TestOTLPHint: where there is no recording, no export is named, which would be that of another one.
func TestOTLPHint(t *testing.T) {
	var errs bytes.Buffer
	s := &liveSpans{o: &otlpOptions{to: "http://ann:hunter2secret@host"}, err: errors.New("no prices")}
	s.end(nil, &console{streams: streams{err: &errs}})
	if got := errs.String(); got != "tapedeck: no spans were sent: no prices\n" {
		t.Error(got)
	}
}
