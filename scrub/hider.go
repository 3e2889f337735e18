package scrub

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// urlPassword is the rule of passwords and tokens in URLs.
const urlPassword = "url_password"

// A hider hides the secrets of headers and URLs, or does no more than learn them.
type hider struct {
	s      *Scrubber
	learns bool // nothing is written: what it returns is of no use
}

func (h hider) header(name, value string) string {
	if strings.TrimSpace(value) == "" {
		return value
	}
	if f, ok := h.s.lookedAt(name, value); ok {
		if f.rule != "" && !h.learns {
			h.s.count([]span{{rule: f.rule}})
		}
		return f.value
	}
	index, seeker := h.s.index.Load(), h.s.seeker.Load()
	f, again := h.field(name, value)
	if again && !h.learns {
		h.s.look(index, seeker, name, value, f)
	}
	return f.value
}

// field is header for one that was not scrubbed before. again says that it reads so the next time too, unless more is known by then.
func (h hider) field(name, value string) (f field, again bool) {
	lower, kind := strings.ToLower(name), names.OfHeader(name, value)
	if kind == names.HeaderSecret || h.s.names.Ordered(name) {
		f = field{h.whole(lower, value), placeholders.RuleName(lower)}
		return f, h.s.isKnown(strings.TrimSpace(value))
	}
	f.value = h.inside(kind, lower, value)
	return f, kind == names.HeaderText && f.value == value
}

// inside hides the secrets in the value of a field that is not one as a whole.
func (h hider) inside(kind names.Header, lower, value string) string {
	switch kind {
	case names.HeaderCredentials:
		return h.authorization(lower, value)
	case names.HeaderCookie:
		pairs := strings.Split(value, ";")
		for i, pair := range pairs {
			pairs[i] = h.cookie(pair)
		}
		return strings.Join(pairs, ";")
	case names.HeaderSetCookie:
		pair, attributes, ok := strings.Cut(value, ";")
		if !ok {
			return h.cookie(pair)
		}
		return h.cookie(pair) + ";" + h.text(attributes)
	case names.HeaderURL:
		return h.url(value)
	}
	return h.text(value)
}

// text scrubs what no name says anything of.
func (h hider) text(v string) string {
	if h.learns {
		h.s.recognise([]byte(v))
		return v
	}
	return h.s.String(v)
}

func (h hider) count(name string) {
	if !h.learns {
		h.s.count([]span{{rule: placeholders.RuleName(name)}})
	}
}

func (h hider) whole(name, value string) string {
	h.count(name)
	return h.s.learn(name, strings.TrimSpace(value))
}

// part hides a part of a URL or of credentials, whose escapes are undone, and makes it known where it is long enough to be searched for.
func (h hider) part(name, value string) string {
	if len(value) < names.MinKnown {
		return h.once(name, value)
	}
	return h.whole(name, value)
}

// once hides what is made for one request: learning it would only cost.
func (h hider) once(name, value string) string {
	h.count(name)
	return h.s.conceal(name, value)
}

// authorization keeps the scheme. What a scheme signs for one request is hidden and not learnt; of another list of parameters
// each is looked at by itself.
func (h hider) authorization(name, value string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
	if !ok {
		return h.whole(name, value)
	}
	rest = strings.TrimSpace(rest)
	if strings.EqualFold(scheme, "basic") {
		if password, ok := names.BasicPassword(rest); ok {
			h.s.learn(name, password)
		}
	}
	if names.SignsRequest(scheme) {
		return scheme + " " + h.once(name, rest)
	}
	if list, ok := h.parameters(name, rest); ok {
		return scheme + " " + list
	}
	return scheme + " " + h.whole(name, rest)
}

// parameters hides the secrets of a list of parameters: Token token="K", email="a@b.c". ok is false where v is no such list.
func (h hider) parameters(name, v string) (list string, ok bool) {
	parts := strings.Split(v, ",")
	for _, part := range parts {
		if !isParameter(part, len(parts) == 1) {
			return "", false
		}
	}
	for i, part := range parts {
		key, rest, _ := strings.Cut(part, "=")
		value := trimQuotes(rest)
		at := strings.LastIndex(part, value)
		key = strings.ToLower(strings.TrimSpace(key))
		switch {
		case value == "" || names.IsOpenParameter(key):
			parts[i] = h.text(part)
			continue
		case names.IsOfRequest(key):
			parts[i] = h.once(name, names.Unescaped(value))
		default:
			parts[i] = h.part(name, value)
		}
		parts[i] = part[:at] + parts[i] + part[at+len(value):]
	}
	return strings.Join(parts, ","), true
}

// isParameter tells whether part is a name and its value, and no key that ends in the padding of base64. One that stands alone
// has quotation marks or a name that says so.
func isParameter(part string, alone bool) bool {
	key, value, ok := strings.Cut(part, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	return ok && strings.Trim(value, "=") != "" && isSettingName(key) && !strings.Contains(key, " ") && !names.LooksMade(key) &&
		(!alone || value[0] == '"' || names.SaySecret(key))
}

// cookie hides the value of a cookie. It is known elsewhere where it was made to be one: consent=accepted says nothing
// of the word accepted, which answers have and programs wait for. A setting stays as it is: a program that keeps its cookies
// in a file writes it there.
func (h hider) cookie(pair string) string {
	name, value, named := strings.Cut(pair, "=")
	if !named {
		name, value = "", pair
	}
	if value == "" {
		return pair
	}
	value = strings.TrimSpace(value)
	var hidden string
	switch {
	case !names.Ordinary(value):
		hidden = h.whole("cookie", value)
	case names.IsSetting(name, value):
		hidden = h.text(value)
	default:
		h.count("cookie")
		hidden = h.s.concealOnly("cookie", value)
	}
	if !named {
		return hidden
	}
	return h.text(name) + "=" + hidden
}

func (h hider) url(u string) string {
	head, fragment, hasFragment := strings.Cut(u, "#")
	head, query, hasQuery := strings.Cut(head, "?")
	out := h.userinfo(head)
	if hasQuery {
		out += "?" + h.query(query)
	}
	if hasFragment {
		out += "#" + h.query(fragment) // where implicit grants put their tokens
	}
	return h.text(out)
}

func (h hider) userinfo(head string) string {
	const minToken = 16 // bytes from which a name of a user without a password is taken for a token
	scheme, rest, ok := strings.Cut(head, "://")
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if !ok || at < 0 {
		return head
	}
	user, password, two := strings.Cut(authority[:at], ":")
	switch {
	case two && !names.IsFiller(password):
		password = h.part(urlPassword, names.Unescaped(password))
	case len(user) >= minToken:
		user = h.part(urlPassword, names.Unescaped(user))
	default:
		return head
	}
	if two {
		user += ":" + password
	}
	return scheme + "://" + user + rest[at:]
}

func (h hider) query(q string) string {
	parts := strings.Split(q, "&")
	flow := h.s.names.OfFlow(q)
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || value == "":
		case slices.Contains(flow, name):
			parts[i] = name + "=" + h.part(name, formValue(value))
		default:
			parts[i] = name + "=" + h.queryValue(formValue(name), value)
		}
	}
	return strings.Join(parts, "&")
}

func (h hider) queryValue(name, raw string) string {
	value := formValue(raw)
	switch {
	case names.IsSignature(name):
		return h.once(name, value)
	case names.OfQuery(name, value), h.s.names.Of([]byte(name)).IsSecret(value):
		return h.part(name, value)
	case !h.s.names.Any() || !BeginsJSON([]byte(value)):
		return raw
	}
	l := look{names: h.s.names}
	l.text([]byte(value))
	if _, over := h.s.LearnAll(l.found); len(over) > 0 {
		h.count(name)
		return h.s.conceal(over[0].Name, value)
	}
	return raw
}

// proxySpans returns the secret of user:password@host:port, which is what programs take of HTTP_PROXY, https_proxy,
// npm_config_proxy and their like where no scheme stands.
func proxySpans(name, value string) []span {
	if !names.IsProxy(name) || strings.Contains(value, "://") {
		return nil
	}
	authority, _, _ := strings.Cut(value, "/")
	start, end, ok := names.InUserinfo(authority)
	if !ok {
		return nil
	}
	return []span{{start: start, end: end, rule: urlPassword}}
}

// A settingList is how settings stand side by side: what a whole list is, and one setting of it, whose groups are the name and the value.
type settingList struct {
	sign       string
	whole, one *lazyregexp.Regexp
}

func listOf(nameChars, sign string) settingList {
	one := `(` + nameChars + `+)=((?:"[^"]*(?:"|$)|'[^']*(?:'|$))?[^` + sign + `]*)`
	return settingList{sign, lazyregexp.New(`^\s*(?:` + sign + `\s*|` + one + `(?:` + sign + `\s*|$))*$`), lazyregexp.New(one)}
}

// settingLists are what programs reach a database with: Server=db;User Id=sa;Password=V (ADO, Azure) and host=db user=ann password=V (libpq).
var settingLists = []settingList{listOf(`[A-Za-z0-9 _.-]`, `;`), listOf(`[A-Za-z0-9_.-]`, ` `)}

// settingSpans returns the secrets of a list of settings. A text that is not two settings at least, and nothing else, has none.
func settingSpans(v string) (spans []span) {
	if strings.Count(v, "=") < 2 || strings.Contains(v, "://") && !strings.Contains(v, ";") {
		return nil
	}
	i := slices.IndexFunc(settingLists, func(l settingList) bool { return strings.Contains(v, l.sign) && l.whole.MatchString(v) })
	if i < 0 {
		return nil
	}
	for _, at := range settingLists[i].one.FindAllSubmatchIndex([]byte(v), -1) {
		name, value := strings.TrimSpace(v[at[2]:at[3]]), v[at[4]:at[5]]
		if trimmed := trimQuotes(value); trimmed != "" && names.SettingOpens(name) {
			start := at[4] + strings.Index(value, trimmed)
			spans = append(spans, span{start: start, end: start + len(trimmed), rule: placeholders.RuleName(name)})
		}
	}
	return spans
}

func isSettingName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || !chars.IsAlnum(byte(r)) && !strings.ContainsRune(" _.-", r) })
}

// trimQuotes returns v without the blanks and the quotation marks around it.
func trimQuotes(v string) string {
	v = strings.TrimSpace(v)
	if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
		v = strings.TrimSpace(v[1 : n-1])
	}
	return v
}
