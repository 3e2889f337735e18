// Command gitleaks writes the rules of gitleaks as a file of package scrub.
//
//	go run . -o ../../scrub/gitleaks.go
//
// It is a module of its own: gitleaks brings a configuration library, a logger and some forty more modules, none of which
// belongs into the program of somebody who records an agent. What scrub needs of it is data.
//
// gitleaks scans whole files, line ends and all; scrub scans streams, and JSON in which code is quoted. So a rule is taken
// apart into what scrub can look for as it goes: the literal that its evidence begins with, whether an assignment stands
// between a service's name and the secret, and the expression of the secret alone. A rule that has no such literal is left
// out, with its reason (leftOut), or said anew (said). A rule that cannot be taken apart ends the program: a new version
// of gitleaks does not lose rules silently.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

// version is that of gitleaks; go.mod pins it.
const version = "v8.30.0"

// A source is gitleaks.toml, as far as it is read.
type source struct {
	Allowlist allowlist `toml:"allowlist"`
	Rules     []struct {
		ID         string      `toml:"id"`
		Regex      string      `toml:"regex"`
		Entropy    float64     `toml:"entropy"`
		Allowlists []allowlist `toml:"allowlists"`
	} `toml:"rules"`
}

type allowlist struct {
	Target    string   `toml:"regexTarget"`
	Regexes   []string `toml:"regexes"`
	StopWords []string `toml:"stopwords"`
}

func main() {
	out := flag.String("o", "gitleaks.go", "the file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "gitleaks:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	var src source
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &src); err != nil {
		return err
	}
	for re, with := range anchored {
		i := slices.Index(src.Allowlist.Regexes, re)
		if i < 0 {
			return fmt.Errorf("%s is said here and not in gitleaks %s", re, version)
		}
		src.Allowlist.Regexes[i] = with
	}
	shapes, err := shapesOf(&src)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	write(&b, &src, shapes)
	code, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	fmt.Printf("gitleaks %s: %d rules, %d left out, %d shapes\n", version, len(src.Rules), len(leftOut), len(shapes))
	return os.WriteFile(out, code, 0o644)
}

// shapesOf takes every rule apart.
func shapesOf(src *source) ([]*shape, error) {
	var shapes []*shape
	ids := make(map[string]bool)
	for _, r := range src.Rules {
		ids[r.ID] = true
		if leftOut[r.ID] != "" {
			continue
		}
		var allow []string
		for _, a := range r.Allowlists {
			if a.Target == "" {
				allow = append(allow, a.Regexes...)
			}
		}
		parts := said[r.ID]
		if parts == nil {
			var err error
			if parts, err = takeApart(r.Regex); err != nil {
				return nil, fmt.Errorf("rule %s: %w: put it into leftOut or said", r.ID, err)
			}
		}
		for _, p := range parts {
			s := *p
			s.ID, s.Entropy = r.ID, r.Entropy
			if s.Allow == nil && !s.NoAllow {
				s.Allow = allow
			}
			if s.Assigned && ownForm[r.ID] == "" {
				own, err := beginsLikeNoID(s.Re)
				if err != nil {
					return nil, err
				}
				s.Says = !own
			}
			if err := s.check(); err != nil {
				return nil, fmt.Errorf("rule %s: %w", r.ID, err)
			}
			shapes = append(shapes, &s)
		}
	}
	for _, id := range slices.Concat(keys(leftOut), keys(said), keys(ownForm)) {
		if !ids[id] {
			return nil, fmt.Errorf("rule %s is said here and not in gitleaks %s", id, version)
		}
	}
	return shapes, nil
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func write(b *bytes.Buffer, src *source, shapes []*shape) {
	fmt.Fprintf(b, header, version)
	fmt.Fprintf(b, "// leakStopWords make a find none that holds one of them, in lowercase.\nvar leakStopWords = %s\n\n", list(src.Allowlist.StopWords))
	fmt.Fprintf(b, "// leakAllowed are what a find is in full where it is none.\nvar leakAllowed = %s\n\n", list(src.Allowlist.Regexes))
	fmt.Fprintf(b, "var leaks = []leak{\n")
	for _, s := range shapes {
		fmt.Fprintf(b, "{id: %q, names: %s, re: %s", s.ID, list(s.Names), raw(s.Re))
		for _, f := range []struct {
			on   bool
			name string
		}{{s.Fold, "fold"}, {s.Assigned, "assigned"}, {s.Says, "says"}, {s.Word, "word"}, {s.Alone, "alone"}, {s.Closed, "closed"}} {
			if f.on {
				fmt.Fprintf(b, ", %s: true", f.name)
			}
		}
		if s.Behind != "" {
			fmt.Fprintf(b, ", behind: %s", raw(s.Behind))
		}
		if s.Entropy > 0 {
			fmt.Fprintf(b, ", entropy: %g", s.Entropy)
		}
		if len(s.Allow) > 0 {
			fmt.Fprintf(b, ", allow: %s", list(s.Allow))
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
}

func raw(s string) string {
	if strings.Contains(s, "`") {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}

func list(l []string) string {
	quoted := make([]string, len(l))
	for i, s := range l {
		quoted[i] = raw(s)
	}
	return "[]string{" + strings.Join(quoted, ", ") + "}"
}

// leftOut are the rules that scrub does not look for, each with its reason.
var leftOut = map[string]string{
	"generic-api-key":        "hits ordinary text: any assignment to a name with key, auth or token in it",
	"asana-client-id":        "hits ordinary numbers; an id opens nothing",
	"discord-client-id":      "hits ordinary numbers; an id opens nothing",
	"curl-auth-header":       "runs on from the word curl without a bound; Bearer and Basic are found by their scheme, and X-Api-Key by its name",
	"curl-auth-user":         "runs on from the word curl without a bound; the arguments of the program itself are read by deck",
	"kubernetes-secret-yaml": "spans lines without a bound, and is meant for .yaml files alone",
	"hashicorp-tf-password":  "any quoted word after password; meant for .tf files alone",
	"nuget-config-password":  "any attribute; meant for nuget.config alone",
	"pkcs12-file":            "a path: names.IsCredentialFile knows .p12 and .pfx",
	"private-key":            "scrub has a rule of its own, which follows a block line by line and needs no END",
	"jwt":                    "scrub has a rule of its own",
	"maxmind-license-key":    "its literal stands at its end: a stream would have to hold every word back",
	"adobe-client-id":        anID,
	"bitbucket-client-id":    anID,
	"linkedin-client-id":     anID,
	"looker-client-id":       anID,
	"messagebird-client-id":  anID,
	"new-relic-user-api-id":  anID,
	"plaid-client-id":        anID,
	"sendbird-access-id":     anID,
	"sumologic-access-id":    anID,
	"sidekiq-sensitive-url":  "credentials in a URL: scrub finds those of every host",
}

const anID = "an id opens nothing, and looks like any other id of the service"

// ownForm are the assigned secrets that no ordinary id looks like though they do not begin with a literal. What is assigned to
// the name of a service is found without more where its expression begins with one (see shape.Says); else the name must
// say that it is a secret, for a jira_account_id is no jira_api_token, and both are 24 letters and digits.
var ownForm = map[string]string{
	"dropbox-long-lived-api-token": "ten As in its middle",
	"mailchimp-api-key":            "ends in the name of a data centre",
	"sidekiq-secret":               "the name is that of a credential",
	"sonar-api-token":              "the name says so: sonar.login too",
	"telegram-bot-api-token":       "a colon and an A in its middle",
	"twitter-bearer-token":         "begins with 22 As",
}

// said are the rules that are said anew.
var said = map[string][]*shape{
	// Its literal stands in the middle. What stands before it is the hint that Azure shows of a secret, and is left.
	"azure-ad-client-secret": {{Names: []string{"Q~"}, Re: `Q~[a-zA-Z0-9_~.-]{31,34}`, Behind: `[a-zA-Z0-9_~.]{3}[0-9]$`, Closed: true}},
	// What stands before the literal names the token.
	"hashicorp-tf-api-token": {{Names: []string{"atlasv1."}, Re: `atlasv1\.[A-Za-z0-9_=-]{60,70}`, Behind: `[A-Za-z0-9]{14}\.$`}},
	// What stands before the literal is the number of the app.
	"facebook-access-token": {
		{Names: []string{"%7c"}, Fold: true, Re: `(?i)%7c[0-9a-z_-]{27,40}`, Behind: `[0-9]{15}$`, Closed: true},
		{Names: heads1("|", "0123456789abcdefghijklmnopqrstuvwxyz"), Fold: true, Re: `(?i)\|[0-9a-z][0-9a-z_-]{26,39}`, Behind: `[0-9]{15}$`, Closed: true},
	},
	// Without 40 hex digits of their own, which are commits of Git.
	"sourcegraph-access-token": {{Names: []string{"sgp_"}, Fold: true, Word: true, Closed: true,
		Re: `(?i)sgp_(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}`}},
	// Without "s." and 24 letters or digits, which is how a method is called; what gitleaks allows is of these, and stands in
	// tokens of the other form.
	"vault-service-token": {{Names: []string{"hvs."}, Word: true, NoAllow: true, Closed: true, Re: `hvs\.[\w-]{90,120}`}},
	"atlassian-api-token": {
		{Names: []string{"atlassian", "confluence", "jira"}, Fold: true, Assigned: true, Closed: true, Re: `(?i)[a-z0-9]{20}[a-f0-9]{4}`},
		{Names: []string{"ATATT3"}, Word: true, Closed: true, Re: `ATATT3[A-Za-z0-9_\-=]{186}`},
	},
	"mailchimp-api-key":   {{Names: []string{"mailchimp", "mailchimpsdk.initialize"}, Fold: true, Assigned: true, Closed: true, Re: `(?i)[a-f0-9]{32}-us\d\d`}},
	"freemius-secret-key": {{Names: []string{"secret_key"}, Fold: true, Assigned: true, Closed: true, Re: `sk_[^\s"'\\]{29}`}},
	// With what follows the literal, which is the secret.
	"aws-amazon-bedrock-api-key-short-lived": {{Names: []string{"bedrock-api-key-"}, Word: true, Closed: true,
		Re: `bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/_-]*={0,2}`}},
	// From the host on: the scheme may be absent.
	"slack-webhook-url": {{Names: []string{"hooks.slack.com/"}, Re: `hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56}`}},
	"microsoft-teams-webhook": {{Names: []string{"webhook.office.com/"}, Re: `webhook\.office\.com/webhookb2/[a-z0-9]{8}-([a-z0-9]{4}-){3}` +
		`[a-z0-9]{12}@[a-z0-9]{8}-([a-z0-9]{4}-){3}[a-z0-9]{12}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9]{8}-([a-z0-9]{4}-){3}[a-z0-9]{12}`}},
	"openai-api-key": {{Names: []string{"sk-"}, Word: true, Closed: true, Re: `sk-(?:(?:proj|svcacct|admin)-(?:[A-Za-z0-9_-]{74}|` +
		`[A-Za-z0-9_-]{58})T3BlbkFJ(?:[A-Za-z0-9_-]{74}|[A-Za-z0-9_-]{58})|[a-zA-Z0-9]{20}T3BlbkFJ[a-zA-Z0-9]{20})`}},
	// The literals of these stand in base64 of anything: no digit of base64 may stand before them.
	"square-access-token": {
		{Names: []string{"EAAA"}, Alone: true, Closed: true, Re: `EAAA[\w-]{22,60}`},
		{Names: []string{"sq0atp-"}, Word: true, Closed: true, Re: `sq0atp-[\w-]{22,60}`},
	},
	"facebook-page-access-token":            {{Names: []string{"EAAC", "EAAM"}, Alone: true, Closed: true, Re: `EAA[MC][A-Za-z0-9]{100,}`}},
	"artifactory-api-key":                   {{Names: []string{"AKCp"}, Alone: true, Closed: true, Re: `AKCp[A-Za-z0-9]{69}`}},
	"artifactory-reference-token":           {{Names: []string{"cmVmd"}, Alone: true, Closed: true, Re: `cmVmd[A-Za-z0-9]{59}`}},
	"aws-amazon-bedrock-api-key-long-lived": {{Names: []string{"ABSK"}, Alone: true, Closed: true, Re: `ABSK[A-Za-z0-9+/]{109,269}={0,2}`}},
}

// heads1 returns first before each of the bytes of seconds.
func heads1(first, seconds string) (out []string) {
	for i := range len(seconds) {
		out = append(out, first+seconds[i:i+1])
	}
	return out
}

// anchored are the expressions of what is no secret that leave an alternative without its anchor.
var anchored = map[string]string{`(?i)^true|false|null$`: `(?i)^(?:true|false|null)$`}

const header = `// Code generated by tools/gitleaks from gitleaks %s; DO NOT EDIT.

package scrub

// The rules in this file are those of gitleaks (github.com/gitleaks/gitleaks), under its license:
//
// MIT License
//
// Copyright (c) 2019 Zachary Rice
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.

`
