package scrub

import (
	"slices"
	"strings"
)

// What OAuth passes through a browser and back says by its company that it is a secret, not by its name alone: a "code" of any other
// form or query is one of many things, and so is a "state".
var (
	// ofAuthorization are what a program makes up for one request for authorization, beside response_type and client_id.
	ofAuthorization = []string{"state", "nonce", "code_challenge"}
	// ofRedirection are what comes back to its redirect_uri: code, or error, and with it one of besideCode.
	ofRedirection = []string{"code", "state"}
	besideCode    = []string{"state", "iss", "session_state"}
	// ofExchange are what is exchanged for tokens by a form with grant_type=authorization_code.
	ofExchange = []string{"code"}
)

// flowNames lists the names in a query or a form that are secrets as parts of an OAuth flow.
func (s *Scrubber) flowNames(q string) []string {
	if s.rules < rulesOAuth || !strings.Contains(q, "code") && !strings.Contains(q, "state=") {
		return nil
	}
	has := make(map[string]string)
	for part := range strings.SplitSeq(q, "&") {
		if name, value, ok := strings.Cut(part, "="); ok && value != "" {
			has[name] = value
		}
	}
	switch {
	case has["grant_type"] == "authorization_code":
		return ofExchange
	case has["response_type"] != "" && has["client_id"] != "":
		return ofAuthorization
	case (has["code"] != "" || has["error"] != "") && slices.ContainsFunc(besideCode, func(n string) bool { return has[n] != "" }):
		return ofRedirection
	}
	return nil
}

// NamedInURL returns what the query of a URL gives away as part of an OAuth flow, in order: what a program makes up for it is another
// on a replay.
func (s *Scrubber) NamedInURL(u string) (found []Named) {
	u, _, _ = strings.Cut(u, "#")
	_, query, _ := strings.Cut(u, "?")
	names := s.flowNames(query)
	if names == nil {
		return nil
	}
	for part := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(part, "="); ok && value != "" && slices.Contains(names, name) {
			found = append(found, Named{Name: name, Value: formValue(value)})
		}
	}
	return found
}
