package scrub

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// vendorKeys are the keys of providers that gitleaks has no rule for, or one that asks for more than a key by itself: the name of the
// service before it, whose name for it is taken then. Each has a literal of its own; where that is short, what follows must look random too.
var vendorKeys = slices.Concat(
	keys(prefixRule{rule: "bitbucket", min: 32, max: 32, set: chars.Alnum, alone: true, accept: random}, "ATBB"),
	keys(prefixRule{rule: "bitbucket", min: 60, max: 512, set: chars.NewSet("_-="), accept: random}, "ATCTT3"),
	keys(prefixRule{rule: "brave", min: 27, max: 29, set: chars.Token, alone: true, accept: random}, "BSA"),
	keys(prefixRule{rule: "cerebras", min: 40, max: 64, set: chars.Alnum, word: true, accept: names.HasDigit}, "csk-"),
	keys(prefixRule{rule: "docker", min: 20, max: 64, set: chars.Token, accept: names.HasDigit}, "dckr_oat_", "dckr_pat_"),
	keys(prefixRule{rule: "e2b", min: 40, max: 40, set: chars.Alnum, word: true, accept: hexDigits}, "e2b_"),
	keys(prefixRule{rule: "elevenlabs", min: 48, max: 48, set: chars.Alnum, word: true, accept: hexDigits}, "sk_"),
	keys(prefixRule{rule: "figma", min: 36, max: 64, set: chars.Token, word: true, accept: names.HasDigit}, "figd_"),
	keys(prefixRule{rule: "firecrawl", min: 32, max: 32, set: chars.Alnum, word: true, accept: hexDigits}, "fc-"),
	keys(prefixRule{rule: "fireworks", min: 20, max: 36, set: chars.Alnum, alone: true, accept: random}, "fw_"),
	keys(prefixRule{rule: "google", min: 20, max: 40, set: chars.Token, word: true}, "GOCSPX-"),
	keys(prefixRule{rule: "google", min: 20, max: 2048, set: chars.NewSet("_-."), word: true, accept: names.HasDigit}, "ya29."),
	keys(prefixRule{rule: "groq", min: 40, max: 64, set: chars.Alnum, word: true, accept: names.HasDigit}, "gsk_"),
	keys(prefixRule{rule: "jina", min: 40, max: 80, set: chars.Token, word: true, accept: jinaKey}, "jina_"),
	keys(prefixRule{rule: "langfuse", min: chars.UUIDLen, max: chars.UUIDLen, set: chars.Token, word: true,
		accept: func(b []byte) bool { return isUUID(string(b)) }}, "sk-lf-"),
	keys(prefixRule{rule: "langsmith", min: 32, max: 64, set: chars.Word, word: true, accept: names.HasDigit}, "lsv2_pt_", "lsv2_sk_"),
	keys(prefixRule{rule: "mailgun", min: 32, max: 32, set: chars.Alnum, word: true, accept: hexDigits, stays: true}, "key-"),
	keys(prefixRule{rule: "new_relic_user_api_key", min: 27, max: 27, set: chars.Alnum, word: true, accept: upperAlnum}, "NRAK-"),
	keys(prefixRule{rule: "new_relic_insert_key", min: 32, max: 32, set: chars.Token, word: true, accept: names.HasDigit}, "NRII-"),
	keys(prefixRule{rule: "notion", min: 40, max: 64, set: chars.Alnum, word: true, accept: names.HasDigit}, "ntn_"),
	keys(prefixRule{rule: "nvidia", min: 40, max: 100, set: chars.Token, word: true, accept: names.HasDigit}, "nvapi-"),
	keys(prefixRule{rule: "onepassword", min: 60, max: maxLeak, set: chars.Token, word: true, accept: names.HasDigit}, "ops_ey"),
	keys(prefixRule{rule: "pinecone", min: 40, max: 100, set: chars.Word, word: true, accept: names.HasDigit}, "pcsk_"),
	keys(prefixRule{rule: "replicate", min: 37, max: 37, set: chars.Token, alone: true, accept: random}, "r8_"),
	keys(prefixRule{rule: "sentry", min: 60, max: 1024, set: chars.NewSet("_+/="), word: true, accept: names.HasDigit}, "sntrys_"),
	keys(prefixRule{rule: "supabase", min: 20, max: 64, set: chars.Token, word: true, accept: names.HasDigit}, "sb_secret_"),
	keys(prefixRule{rule: "supabase", min: 40, max: 40, set: chars.Alnum, word: true, accept: hexDigits}, "sbp_", "sbp_oauth_"),
	keys(prefixRule{rule: "tavily", min: 20, max: 80, set: chars.Token, word: true, accept: names.HasDigit}, "tvly-"),
	keys(prefixRule{rule: "vercel", min: 24, max: 100, set: chars.Alnum, alone: true, accept: random}, "vca_", "vci_", "vck_", "vcp_", "vcr_"),
	keys(prefixRule{rule: "vercel", min: 24, max: 100, set: chars.Word, word: true, accept: random}, "vercel_blob_rw_"),
	keys(prefixRule{rule: "xai", min: 60, max: 100, set: chars.Word, word: true, accept: names.HasDigit}, "xai-"),
)

// random tells what was drawn from capitals, small letters and digits, and is no name.
func random(b []byte) bool {
	const least = 3.4 // bits a byte; of twenty characters drawn from 62 there are 4
	return names.HasDigit(b) && !bytes.Equal(b, bytes.ToLower(b)) && !bytes.Equal(b, bytes.ToUpper(b)) && entropy(b) >= least
}

func hexDigits(b []byte) bool {
	for _, c := range b {
		if !chars.IsLowerHex(c) {
			return false
		}
	}
	return names.HasDigit(b)
}

// jinaKey tells a key from the name of a model: jina_embeddings_v2_….
func jinaKey(b []byte) bool { return names.HasDigit(b) && !bytes.ContainsAny(b[:20], "_-") }

// telegramRule finds the secret of a bot's token, which stands behind the bot's number. The number is no secret.
var telegramRule = &rule{starts: []string{":AA", "%3A", "%3a"}, names: []string{"telegram"}, match: func(t text, i int) (span, outcome) {
	const fewest, length = 8, 35
	if i < fewest || bytes.ContainsFunc(t.b[i-fewest:i], func(r rune) bool { return r < '0' || r > '9' }) {
		return span{}, miss
	}
	start := i + 1
	if t.b[i] == '%' {
		start = i + len("%3A")
	}
	if o := t.literal(start, "AA"); o != hit {
		return span{}, o
	}
	end, o := t.run(start, chars.Token, length)
	if o == hit && end-start != length {
		o = miss
	}
	return span{start: start, end: end, rank: shaped, rule: "telegram"}, o
}}

// webhookRule finds the secret at the end of the URL of a webhook of Discord, …/webhooks/NUMBER/SECRET, whose slashes may be escaped.
var webhookRule = &rule{starts: []string{"hoo"}, names: []string{"discord"}, match: func(t text, i int) (span, outcome) {
	const fewest, most, least, longest = 17, 20, 60, 80
	if !bytes.HasSuffix(t.b[:i], []byte("web")) {
		return span{}, miss
	}
	if o := t.literal(i, "hooks"); o != hit {
		return span{}, o
	}
	start, o := slash(t, i+len("hooks"))
	if o != hit {
		return span{}, o
	}
	end := start
	for end < len(t.b) && end-start <= most && chars.IsDigit(t.b[end]) {
		end++
	}
	switch n := end - start; {
	case end == len(t.b):
		return span{}, t.ended()
	case n < fewest || n > most:
		return span{}, miss
	}
	if start, o = slash(t, end); o != hit {
		return span{}, o
	}
	end, o = t.run(start, chars.Token, longest)
	if o == hit && (end-start < least || !names.HasDigit(t.b[start:end])) {
		o = miss
	}
	return span{start: start, end: end, rank: shaped, rule: "discord"}, o
}}

// slash returns the end of the slash at i, as it is or escaped.
func slash(t text, i int) (end int, o outcome) { return t.oneOf(i, "/", `\/`, "%2F", "%2f") }

// maxNetrc bounds, in bytes, one machine.
const maxNetrc = 1 << 10

// netrcRule finds the password of a machine in the words of a .netrc, in whatever order and on however many lines: machine HOST login
// NAME password SECRET. Line ends may be those of a string of JSON. Words of prose on one line are none.
var netrcRule = &rule{starts: []string{"mac"}, names: []string{"netrc"}, match: func(t text, i int) (span, outcome) {
	if o := t.literal(i, "machine"); o != hit {
		return span{}, o
	}
	if !chars.Boundary(t.b, i) {
		return span{}, miss
	}
	from, end, o := netrcWord(t, i+len("machine"), i)
	host := string(t.b[from:end])
	for o == hit {
		var start int
		start, end, o = netrcWord(t, end, i)
		if o != hit {
			break
		}
		key := string(t.b[start:end])
		if key != "login" && key != "account" && key != "port" && key != "password" {
			return span{}, miss
		}
		if from, end, o = netrcWord(t, end, i); o == hit && key == "password" {
			value := string(t.b[from:end])
			if isNetrcExample(value) || isProse(host, value) && !hasLineEnd(t.b[i:from]) {
				return span{}, miss
			}
			return span{start: from, end: end, rule: "netrc", context: true}, hit
		}
	}
	return span{}, o
}}

// isProse tells whether what stands on one line behind a host is a sentence: neither names a machine, nor is the password no word.
func isProse(host, value string) bool {
	isHost := host == "localhost" || strings.Contains(strings.Trim(host, "."), ".")
	return !isHost && names.AreWords(strings.TrimRight(value, "'`,;.:!?)"))
}

// hasLineEnd tells whether b has a line end, be it that of a string of JSON.
func hasLineEnd(b []byte) bool {
	return bytes.ContainsAny(b, "\r\n") || bytes.Contains(b, []byte(`\n`)) || bytes.Contains(b, []byte(`\r`))
}

// isNetrcExample tells a password that is none: of a document, a template or a program.
func isNetrcExample(v string) bool {
	for _, begin := range []string{"<", `\u003c`, "{", placeholders.Prefix} {
		if strings.HasPrefix(v, begin) {
			return true
		}
	}
	return names.IsExample(strings.TrimRight(v, "'`,;.)")) || strings.Contains(v, `\u00`) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' })
}

// netrcWord returns the word behind the blanks at i, of a machine that began at first.
func netrcWord(t text, i, first int) (start, end int, o outcome) {
	start = i
	for n := 1; n > 0; start += n {
		if start-first >= maxNetrc {
			return 0, 0, miss
		}
		if n, o = blank(t, start); o == more {
			return 0, 0, more
		}
	}
	for end = start; start > i && end-first < maxNetrc; end++ {
		if end == len(t.b) {
			return start, end, t.endedOr(hit)
		}
		n, o := blank(t, end)
		switch c := t.b[end]; {
		case o == more:
			return 0, 0, more
		case end > start && (n > 0 || c == '"' || endsQuoted(t, end)):
			return start, end, hit
		case n > 0 || c == '"':
			return 0, 0, miss
		}
	}
	return 0, 0, miss
}

// blank returns the length of the white space at i, which may be escaped as in JSON; 0 for none.
func blank(t text, i int) (n int, o outcome) {
	if n, o = quote(t, i); o == hit && strings.IndexByte("'\"`", t.b[i+n-1]) >= 0 {
		return 0, miss
	}
	return n, o
}

// endsQuoted tells whether a quotation mark that is escaped stands at i.
func endsQuoted(t text, i int) bool {
	n, _ := t.slashes(i, 0)
	return n > 0 && i+n < len(t.b) && t.b[i+n] == '"'
}
