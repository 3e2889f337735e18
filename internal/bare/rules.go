package bare

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// foreignNames are the members of JSON objects and forms whose values are secrets on tapes of other producers too.
var foreignNames = []string{
	"access_token", "api_key", "apikey", "client_assertion", "client_secret", "id_token", "passwd", "password", "private_key",
	"refresh_token", "secret_access_key", "session_token",
}

// NewScrubber returns the scrubber of a bare tape whose secrets are, or were, found by o.Rules. It makes a key that nobody needs
// again: placeholders are numbered before they reach the tape.
func NewScrubber(o *scrub.Options) *scrub.Scrubber {
	var key scrub.Key
	rand.Read(key[:]) // never fails (crypto/rand)
	var own scrub.Options
	if o != nil {
		own = *o
	}
	if own.Rules == scrub.RulesForeign {
		own.SecretNames = slices.Concat(own.SecretNames, foreignNames)
	}
	return scrub.New(key, &own)
}

// keyRules is the key of a tape's header that says by which version of the shapes its secrets were found; none is 1.
const keyRules = "scrub_rules"

// RulesField is what the header of a tape says of the rules by which its secrets were found.
func RulesField(rules int) tape.Field {
	return tape.Field{Name: keyRules, Value: []byte(strconv.Itoa(rules))}
}

// RulesOf returns the version that a header says. The error is of a version that is not known here.
func RulesOf(h *tape.Header) (int, error) {
	rules := 1
	if raw := tape.FieldValue(h.Extra, keyRules); raw != nil {
		if err := json.Unmarshal(raw, &rules); err != nil {
			return 0, fmt.Errorf("%s of the header: %w", keyRules, err)
		}
	}
	return rules, scrub.CheckRules(rules)
}
