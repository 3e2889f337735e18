package rpcapi_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/proposal"
)

// Who writes a client from docs/reference/daemon-methods.md finds there every key of a proposal and of its results.
func TestGuideHasTheKeysOfProposals(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/daemon-methods.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Proposals")
	section, _, _ = strings.Cut(section, "\n## ")
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(section, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		words[w] = true
	}
	for _, v := range []any{proposal.Proposal{}, proposal.Action{}, proposal.Precondition{}, proposal.Result{}, proposal.ActionResult{}, proposal.Cost{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" && !words[key] {
				t.Errorf("%T has %q, and docs/reference/daemon-methods.md does not", v, key)
			}
		}
	}
}
