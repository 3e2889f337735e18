package scrub_test

import (
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// ownShapes are expressions of the keys that scrub knows by itself.
var ownShapes = map[string]string{
	"anthropic":          `sk-ant-api03-[A-Za-z0-9_-]{93}AA`,
	"openai":             `sk-[a-zA-Z0-9]{48}`,
	"openai, of project": `sk-proj-[A-Za-z0-9_-]{80}`,
	"openrouter":         `sk-or-v1-[0-9a-f]{64}`,
	"google":             `AIza[A-Za-z0-9_-]{35}`,
	"github":             `ghp_[A-Za-z0-9]{36}`,
	"github, fine":       `github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`,
	"aws":                `AKIA[A-Z0-9]{16}`,
	"slack":              `xoxb-[0-9]{11}-[0-9]{11}-[A-Za-z0-9]{24}`,
	"stripe":             `sk_live_[A-Za-z0-9]{24}`,
	"npm":                `npm_[A-Za-z0-9]{36}`,
	"huggingface":        `hf_[A-Za-z0-9]{34}`,
	"jwt":                `eyJ[A-Za-z0-9_-]{17}\.eyJ[A-Za-z0-9_-]{37}\.[A-Za-z0-9_-]{43}`,

	"bitbucket":           `ATBB[A-Za-z0-9]{24}[0-9A-F]{8}`,
	"bitbucket, of repo":  `ATCTT3xFfG[A-Za-z0-9_-]{170}=[0-9A-F]{8}`,
	"brave":               `BSA[A-Za-z0-9_-]{28}`,
	"cerebras":            `csk-[a-z0-9]{48}`,
	"docker":              `dckr_pat_[A-Za-z0-9_-]{27}`,
	"docker, of org":      `dckr_oat_[A-Za-z0-9_-]{32}`,
	"e2b":                 `e2b_[0-9a-f]{40}`,
	"elevenlabs":          `sk_[0-9a-f]{48}`,
	"figma":               `figd_[A-Za-z0-9_-]{40}`,
	"firecrawl":           `fc-[0-9a-f]{32}`,
	"fireworks":           `fw_[A-Za-z0-9]{24}`,
	"google, secret":      `GOCSPX-[A-Za-z0-9_-]{28}`,
	"google, access":      `ya29\.a0[A-Za-z0-9_-]{160}`,
	"groq":                `gsk_[A-Za-z0-9]{52}`,
	"jina":                `jina_[0-9a-f]{32}[A-Za-z0-9_-]{28}`,
	"langfuse":            `sk-lf-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	"langsmith":           `lsv2_pt_[0-9a-f]{32}_[0-9a-f]{10}`,
	"langsmith, service":  `lsv2_sk_[0-9a-f]{32}_[0-9a-f]{10}`,
	"newrelic":            `NRAK-[A-Z0-9]{27}`,
	"newrelic, insert":    `NRII-[A-Za-z0-9_-]{32}`,
	"notion":              `ntn_[0-9]{11}[A-Za-z0-9]{35}`,
	"nvidia":              `nvapi-[A-Za-z0-9_-]{64}`,
	"onepassword":         `ops_eyJ[A-Za-z0-9_-]{240}`,
	"pinecone":            `pcsk_[A-Za-z0-9]{6}_[A-Za-z0-9]{63}`,
	"replicate":           `r8_[A-Za-z0-9]{37}`,
	"sentry, of org":      `sntrys_eyJpYXQiOjE3[A-Za-z0-9]{120}_[A-Za-z0-9]{43}`,
	"sentry, of user":     `sntryu_[0-9a-f]{64}`,
	"supabase":            `sbp_[0-9a-f]{40}`,
	"supabase, of server": `sb_secret_[A-Za-z0-9_-]{22}_[A-Za-z0-9_-]{8}`,
	"tavily":              `tvly-[A-Za-z0-9]{32}`,
	"tavily, dev":         `tvly-dev-[A-Za-z0-9]{32}`,
	"vercel":              `vcp_[A-Za-z0-9]{56}`,
	"vercel, gateway":     `vck_[A-Za-z0-9]{56}`,
	"vercel, blob":        `vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30}`,
	"xai":                 `xai-[A-Za-z0-9]{80}`,
}

// placed are secrets that are found by what stands before them, which stays.
var placed = map[string]struct{ before, secret string }{
	"telegram":           {"bot1234567890:", `AA[A-Za-z0-9_-]{33}`},
	"telegram, in forms": {"1234567890%3A", `AA[A-Za-z0-9_-]{33}`},
	"discord":            {"https://discord.com/api/webhooks/123456789012345678/", `[A-Za-z0-9_-]{68}`},
	"discord, in forms":  {"discord.com%2Fapi%2Fwebhooks%2F123456789012345678%2F", `[A-Za-z0-9_-]{68}`},
	"discord, in JSON":   {`https:\/\/discord.com\/api\/v10\/webhooks\/123456789012345678\/`, `[A-Za-z0-9_-]{68}`},
	"mailgun":            {"key-", `[0-9a-f]{32}`},
	"bearer":             {"Bearer ", `[A-Za-z0-9]{40}`},
	"bearer, in forms":   {"Bearer+", `[A-Za-z0-9]{40}`},
	"bearer, in URLs":    {"bearer%20", `[A-Za-z0-9]{40}`},
}

// besides are what may stand on the two sides of a secret.
var (
	besidesBefore = []string{"", " ", "\n", "+", "key+", "is+it+", "/", "v1/", "https://host.example/path/", `"`, `'`, "`", `\n`, `\t`, `\\n`, `\"`, `\\\"`, `\u0022`,
		"%20", "%22", "%2F", "%3D", "?key=", "&", "&x=", ";", ",", ":", "=", "<", ">", "(", "[", "{", "|", "#", "@"}
	besidesAfter = []string{"", " ", "\n", "+", "+b", "+and+more", "/", "/b", "/path/to", `"`, `'`, "`", `\n`, `\\n`, `\"`, `\\\"`, `\u0022`,
		"%20", "%22", "%2F", "?b=c", "&", "&b=c", ";", ",", ":", "=", "=b", "<", ">", ")", "]", "}", "|", "#", "@", ". And"}
)

// swallows are the shapes whose alphabet has what may stand behind them, and whose length is not fixed: what they find goes as far as
// it goes.
var swallows = map[string]string{
	"bearer": "+/=.", "bearer, in forms": "+/=.", "bearer, in URLs": "+/=.", "google, access": ".", "sentry, of org": "+/=", "bitbucket, of repo": "=",
	"jwt-base64": "+/=\\\n", "kraken-access-token": "+/=", "aws-amazon-bedrock-api-key-long-lived": "+/=",
	"aws-amazon-bedrock-api-key-short-lived": "+/=", "authress-service-client-access-key": "+/=", "slack-webhook-url": "+/", "sentry-org-token": "+/=",
	"grafana-cloud-api-token": "=", "netlify-access-token": "=", "planetscale-api-token": "=.", "planetscale-oauth-token": "=.",
	"planetscale-password": "=.", "yandex-access-token": "=",
}

func isOther(name, secret, after string) bool {
	if after == "=" && !strings.ContainsAny(secret, "_-.~") {
		return true // where a key could be base64, an equals sign behind it makes it such
	}
	return after != "" && strings.ContainsAny(after[:1], swallows[name])
}

// TestSurroundings: every shape is found whatever stands around it, wholly, and nothing else goes.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(21, 22))
	s := scrub.New(testKey, nil)
	check := func(name, begin, secret string) {
		for _, sides := range sides() {
			if after := sides[1]; !isOther(name, secret, after) && !isMasked(t, s, sides[0]+begin, secret, after) {
				t.Errorf("%s", name)
				return
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ownShapes)) {
		check(name, "", example(rng, ownShapes[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(placed)) {
		check(name, placed[name].before, example(rng, placed[name].secret))
	}
	for _, l := range scrub.Leaks() {
		secret := secretOf(rng, l)
		if l.Assigned {
			check(l.ID, l.Name+"_key=", secret)
		} else if l.Behind == "" {
			check(l.ID, "", secret)
		}
	}
}

// sides are what stands on both sides: in the long form, each before with each after.
func sides() (all [][2]string) {
	if os.Getenv("TAPEDECK_LONG") != "" {
		for _, before := range besidesBefore {
			for _, after := range besidesAfter {
				all = append(all, [2]string{before, after})
			}
		}
		return all
	}
	for i := range max(len(besidesBefore), len(besidesAfter)) {
		before, after := besidesBefore[i%len(besidesBefore)], besidesAfter[i%len(besidesAfter)]
		all = append(all, [2]string{before, ""}, [2]string{" ", after}, [2]string{before, after})
	}
	return all
}

// isMasked reports whether the secret is what becomes a placeholder, and nothing else does.
func isMasked(t *testing.T, s *scrub.Scrubber, before, secret, after string) bool {
	out := s.String(before + secret + after)
	middle, ok := strings.CutPrefix(out, before)
	middle, begins := strings.CutPrefix(middle, "td_")
	middle, ends := strings.CutSuffix(middle, after)
	if !ok || !begins || !ends || strings.ContainsAny(middle, "+/%=\"") {
		t.Logf("%s%s%s\n   became %s", before, secret, after, out)
		return false
	}
	return true
}

// TestPEMInForms: a private key is found as a form and as a URL have it.
func TestPEMInForms(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(27, 28))
	s := scrub.New(testKey, nil)
	for _, end := range []string{"\n", "\r\n"} {
		block := "-----BEGIN RSA PRIVATE KEY-----" + end
		for range 5 {
			block += example(rng, `[A-Za-z0-9/+]{64}`) + end
		}
		block += "q+/Zk2Lm9Qw4Rt7Yp3Bn6Q==" + end + "-----END RSA PRIVATE KEY-----"
		for how, written := range map[string]string{"form": url.QueryEscape(block), "URL": url.PathEscape(block), "plain": block, "JSON": strings.Trim(quoted(block), `"`)} {
			text := "a=1&key=" + written + "&b=2"
			for n := 1; n < len(text); n += 37 {
				got := string(scrub.Renumber([]byte(writtenIn(s, text, n))))
				if want := "a=1&key=td_#1&b=2"; got != want {
					t.Errorf("%s in pieces of %d: %s", how, n, got)
				}
			}
		}
	}
}

func writtenIn(s *scrub.Scrubber, text string, n int) string {
	return written(s, text, func(left int) int { return min(left, n) })
}
