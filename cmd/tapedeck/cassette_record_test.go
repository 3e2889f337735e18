package main

import (
	"bytes"
	"testing"
)

// TestRecordKnowsWhatItGives has the value of a variable that --env gives be a secret, as one of the environment is.
func TestRecordKnowsWhatItGives(t *testing.T) {
	t.Setenv("SERVICE_TOKEN", "of-the-environment-4711")
	o := new(cassetteRecordOptions)
	o.Cassette.ResolutionMS, o.Session.Env = 1, []string{"PATH", "API_TOKEN=given-by-hand-4711"}
	err := o.fill([]string{"sh"}, &console{streams: streams{in: new(bytes.Buffer), out: new(bytes.Buffer), err: new(bytes.Buffer)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"of-the-environment-4711", "given-by-hand-4711"} {
		if found := o.Cassette.Scrub.Find([]byte("it is " + value + " here")); len(found) != 1 {
			t.Errorf("%s: %v", value, found)
		}
	}
}
