package httptape_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// setRules replaces what the header of a tape says of the rules.
func setRules(t *testing.T, path, version string) {
	t.Helper()
	path += ".tape"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(b, fmt.Appendf(nil, `"scrub_rules":%d`, scrub.Rules), []byte(version), 1)
	if bytes.Equal(changed, b) {
		t.Fatalf("the header does not name its rules: %.200s", b)
	}
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTapeOfNewerRules: a tape whose secrets were found by rules that are not known here is refused, and can be recorded anew.
func TestTapeOfNewerRules(t *testing.T) {
	path, _ := record(t, nil, say("x"), func(c *http.Client, url string) { get(t, c, url) })
	setRules(t, path, `"scrub_rules":7`)
	_, err := httptape.Open(path, &httptape.Options{Mode: httptape.ModeReplayOnly})
	var unknown *scrub.UnknownRulesError
	if !errors.As(err, &unknown) || unknown.Version != 7 {
		t.Errorf("opened with %v", err)
	}
	o := &httptape.Options{Mode: httptape.ModeRecordOnly}
	recordAt(t, path, o, say("x"), func(c *http.Client, url string) { get(t, c, url) })
	setRules(t, path, `"scrub_rules":2`)
}

// TestTapeOfOlderRules: a tape replays by the rules that it was recorded by: a request that they left as it is matches.
func TestTapeOfOlderRules(t *testing.T) {
	const key = "glpat-0123456789abcdefABCD"
	path, url := record(t, nil, say("x"), func(c *http.Client, url string) { get(t, c, url+"/q") })
	setRules(t, path, `"host":"h"`) // no version is 1
	rewrite(t, path, func(ex *tape.Exchange) { ex.URL = url + "/" + key })
	replayed(t, path, url, nil, func(c *http.Client, url string) { get(t, c, url+"/"+key) })
}

// TestSecretOfAHeaderElsewhere: a secret that no variable holds, and that a header or a query names for the first time, is
// hidden in the URL, the body and the other headers of the same request, and in the next one.
func TestSecretOfAHeaderElsewhere(t *testing.T) {
	for name, send := range map[string]func(*http.Request, string){
		"header": func(r *http.Request, v string) { r.Header.Set("X-Api-Key", v) },
		"scheme": func(r *http.Request, v string) { r.Header.Set("Authorization", "Own "+v) },
		"query":  func(r *http.Request, v string) { r.URL.RawQuery += "&api_key=" + v },
		"user":   func(r *http.Request, v string) { r.Header.Set("Referer", "http://u:"+v+"@h/") },
	} {
		t.Run(name, func(t *testing.T) {
			use := func(value string) func(c *http.Client, url string) {
				return func(c *http.Client, url string) {
					for range 2 {
						r := request(t, t.Context(), "POST", url+"/"+value+"?q="+value, strings.NewReader("the key is "+value))
						r.Header.Set("Accept-Language", value)
						send(r, value)
						res, err := c.Do(r)
						if err != nil {
							t.Fatal(err)
						}
						text(t, res)
					}
				}
			}
			o := &httptape.Options{Env: []string{"HOME=/"}}
			path, url := record(t, o, say("done"), use("cnry7Zx9QvT2mKw7"))
			gone(t, filepath.Dir(path), "cnry7Zx9QvT2mKw7")
			replayed(t, path, url, o, use("other5Rt8Wq1Lz0p"))
		})
	}
}

// TestDigitsOfNumbersCount: an id of 19 digits gets the answer to itself alone, and the error shows both.
func TestDigitsOfNumbersCount(t *testing.T) {
	const body = `{"order":1234567890123456788}`
	path, url := record(t, nil, say("x"), func(c *http.Client, url string) { post(t, c, url, "application/json", body) })
	o := &httptape.Options{Mode: httptape.ModeReplayOnly}
	tr := open(t, path, o)
	_, err := tr.Client().Post(url, "application/json", strings.NewReader(`{"order":1234567890123456789}`))
	if why := unmatched(t, err).Why; !strings.Contains(why, "order: 1234567890123456788 -> 1234567890123456789") {
		t.Errorf("the error says %q", why)
	}
	post(t, tr.Client(), url, "application/json", body)
	if err := tr.Close(); err == nil {
		t.Error("the other request went unnoticed")
	}
}
