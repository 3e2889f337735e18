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
	return len(bytes.Trim(b, hexLetters+numerals)) == 0 && names.HasDigit(b)
}

// jinaKey tells a key from the name of a model: jina_embeddings_v2_….
func jinaKey(b []byte) bool { return names.HasDigit(b) && !bytes.ContainsAny(b[:20], "_-") }

// placedKeys are secrets that are found by what stands before them, which stays: the number of a bot of Telegram, the URL of a webhook of
// Discord, whose slashes may be escaped, and the words of a .netrc, in whatever order and on however many lines, of JSON too.
var placedKeys = []*rule{
	{starts: []string{":AA", "%3A", "%3a"}, names: []string{"telegram"}, match: (&expression{source: `(?::|%3[Aa])(AA[\w-]*)`, limit: 64}).
		finds(span{rule: "telegram", rank: shaped}, func(before, _, secret []byte) bool {
			const digits, length = 8, 35
			return len(secret) == length && len(before)-len(bytes.TrimRight(before, "0123456789")) >= digits
		})},
	{starts: []string{"hoo"}, names: []string{"discord"}, match: (&expression{
		source: `hooks(?:/|\\/|%2[Ff])[0-9]{17,20}(?:/|\\/|%2[Ff])([\w-]{60,80})(?:[^\w-]|\z)`, least: "hooks", limit: 128,
	}).finds(span{rule: "discord", rank: shaped}, func(before, _, secret []byte) bool {
		return bytes.HasSuffix(before, []byte("web")) && names.HasDigit(secret)
	})},
	{starts: []string{"mac"}, names: []string{"netrc"}, match: (&expression{
		source: `machine` + netrcBlanks + netrcWord + `(?:` + netrcBlanks + `(?:login|account|port)` + netrcBlanks + netrcWord + `)*` +
			netrcBlanks + `password` + netrcBlanks + `(` + netrcWord + `)(?:` + netrcBlanks + `|"|\\{1,9}"|\z)`,
		least: "machine", word: true, limit: maxNetrc,
	}).finds(span{rule: "netrc", context: true}, func(_, words, secret []byte) bool {
		return !isNetrcExample(string(secret)) && !isProse(words[:bytes.LastIndex(words, secret)], string(secret))
	})},
}

const (
	maxNetrc    = 1 << 10 // bytes of one machine
	netrcBlanks = `(?:[\s\v]|%20|\\{1,9}[nrt])+`
	netrcWord   = `(?:[^\s\v"\\]|\\{1,9}[^\\nrt"])+?`
)

// isProse tells whether what stands on one line before a password is a sentence: neither names a machine, nor is the password no word.
func isProse(words []byte, value string) bool {
	if hasLineEnd(words) {
		return false
	}
	all := strings.Fields(strings.NewReplacer("%20", " ", `\t`, " ").Replace(string(words)))
	host := all[min(1, len(all)-1)]
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
