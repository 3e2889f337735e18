package scrub

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// fillers stand where a password stands when the user is a token: https://TOKEN:x-oauth-basic@github.com.
var fillers = []string{"", "x-oauth-basic", "x-oauth-token", "x"}

// secretOfUserinfo returns where the secret stands in user:password@ and what follows it: the password, or the user where
// that is a token and the password none.
func secretOfUserinfo(b []byte) (start, end int, ok bool) {
	at := bytes.LastIndexByte(b, '@')
	if at < 0 {
		return 0, 0, false
	}
	user, password, two := bytes.Cut(b[:at], []byte(":"))
	if bytes.IndexByte(user, '@') >= 0 {
		return 0, 0, false
	}
	if two && !isFiller(string(password)) {
		return len(user) + 1, at, !isExample(string(password))
	}
	return 0, len(user), looksLikeToken(user)
}

func isFiller(password string) bool { return slices.Contains(fillers, password) }

// looksLikeToken tells a token from the name of a user: it has 16 letters and digits in a row, three of them digits.
func looksLikeToken(user []byte) bool {
	const least = 16
	digits, letters, row := 0, 0, 0
	for _, c := range user {
		if !chars.IsAlnum(c) {
			digits, letters, row = 0, 0, 0
			continue
		}
		row++
		if chars.IsDigit(c) {
			digits++
		} else {
			letters++
		}
		if row >= least && digits >= 3 && letters > 0 {
			return true
		}
	}
	return false
}

// LearnVar makes known what a variable holds in a URL or, where its name says that it is that of a proxy, without a
// scheme, and the password in a list of settings (Server=db;Password=V): it may stand in no header that would teach it. New
// does this for Options.Env.
func (s *Scrubber) LearnVar(name, value string) {
	if s.rules < rulesGenuine {
		return
	}
	if s.rules >= RulesOfNames && strings.Contains(value, pemBegin) {
		s.learnLines(name, value)
	}
	for _, f := range s.settingSpans(value) {
		if secret := value[f.start:f.end]; len(secret) >= minKnown {
			s.addNamed(f.rule, secret)
		}
	}
	if !strings.Contains(value, "@") {
		return
	}
	for _, f := range append(s.index.Load().urls(value), proxySpans(name, value)...) {
		if secret := unescaped(value[f.start:f.end]); len(secret) >= minKnown {
			s.addNamed(f.rule, secret)
		}
	}
}

// LearnURLs makes the passwords and tokens known that stand in the URLs of a text, which may be one.
func (s *Scrubber) LearnURLs(text string) { s.LearnVar("", text) }

// urls returns the secrets of the URLs of v.
func (x *index) urls(v string) []span {
	spans, _ := x.scan(wholeText(v), 0)
	return slices.DeleteFunc(spans, func(s span) bool { return s.rule != "url_password" })
}

// proxySpans returns the secret of user:password@host:port, which is what programs take of HTTP_PROXY, https_proxy,
// npm_config_proxy and their like where no scheme stands.
func proxySpans(name, value string) []span {
	words := strings.Split(strings.ToUpper(name), "_")
	if !slices.Contains(words, "PROXY") || words[0] == "NO" || strings.Contains(value, "://") {
		return nil
	}
	authority, _, _ := strings.Cut(value, "/")
	start, end, ok := secretOfUserinfo([]byte(authority))
	if !ok {
		return nil
	}
	return []span{{start: start, end: end, rule: "url_password"}}
}
