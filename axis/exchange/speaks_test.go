package exchange_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// TestTextsOfAnswers: what an answer says of a secret is none; the same in a request is one, for people make up such passwords.
func TestTextsOfAnswers(t *testing.T) {
	for _, body := range []string{
		`{"password":["This password is too short. It must contain at least 8 characters."]}`,
		`{"errors":{"password":"must be at least 8 characters"}}`,
		`{"errors":{"passphrase":"Must be at least 8 characters long."}}`,
		`{"password":"muß mindestens 8 Zeichen haben – bitte ändern"}`,
		`{"forgot_password":"Forgot password?","new_password":"New-Password","confirm_password":"Confirm_it"}`,
		`{"password":"not-set-yet","client_secret":"basic-auth"}`,
		`{"license_key":"MIT-License","api_key":"required-in-header","session_token":"optional","licenseKey":"Apache-2.0","master_key":"customer_id"}`,
	} {
		for _, contentType := range []string{"application/json", "text/event-stream"} {
			g := newRig(t, exchange.TapOptions{})
			g.answer(g.begin(url, ""), "", headers("Content-Type", contentType), []byte(body))
			if x, _ := g.last(); g.payload(x.Response) != body {
				t.Errorf("%s became %s", body, g.payload(x.Response))
			}
		}
	}
	for _, v := range []string{"correct horse battery", "not-set-yet", "This is my password."} {
		g := newRig(t, exchange.TapOptions{})
		g.answer(g.begin(url, `{"password":"`+v+`"}`, "Content-Type", "application/json"), "", nil)
		if x, _ := g.last(); strings.Contains(g.payload(x.RequestPayload), v) {
			t.Errorf("a request shows %q", v)
		}
	}
}

// TestSecretsOfAnswers: what an answer may have made is hidden.
func TestSecretsOfAnswers(t *testing.T) {
	for _, body := range []string{
		`{"password":"correct-horse-battery-staple"}`, `{"password":"hunterhunter"}`, `{"password":"a7-not-set"}`, `{"passphrase":"correct horse battery staple"}`,
		`{"password":"tr0ub4dor and 3"}`, `{"api_key":"kXqTbWzRmNvLpYsD"}`, `{"api_key":"qwkjhzxmnbvpoqwuz"}`, `{"access_token":"not-set-yet-2"}`, `{"access_token":"an-access-token-without-a-shape"}`,
	} {
		g := newRig(t, exchange.TapOptions{})
		g.answer(g.begin(url, ""), "", headers("Content-Type", "application/json"), []byte(body))
		if x, _ := g.last(); !strings.Contains(g.payload(x.Response), `:"td_`) {
			t.Errorf("%s is shown", g.payload(x.Response))
		}
	}
}
