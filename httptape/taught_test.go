package httptape_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnswerTeaches: an answer names a secret, which no variable holds, and the program asks for it in a URL and a body
// without its name. It is not on the disk, and the replay asks for the same. What the answer does not call a secret stays.
func TestAnswerTeaches(t *testing.T) {
	for member, secret := range map[string]string{
		"jira_account_id":    "", // the same value, and no secret
		"jira_api_token":     "5b10ac8d82e05b22cc7d4ef5",
		"heroku_api_key":     "01234567-89ab-4def-8123-456789abcdef",
		"twitterApiKey":      "a1b2c3d4e5f6a7b8c9d0e1f2z",
		"mailgun":            "key-0123456789abcdef0123456789abcdef",
		"datadogAccessToken": "0123456789abcdef0123456789abcdef01234567",
	} {
		t.Run(member, func(t *testing.T) {
			value := secret
			if value == "" {
				value = "5b10ac8d82e05b22cc7d4ef5"
			}
			serve := func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/token" {
					io.Copy(w, r.Body)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				json.NewEncoder(w).Encode(map[string]string{member: value})
			}
			path := both(t, nil, serve, func(c *http.Client, url string) {
				var answer map[string]string
				if err := json.Unmarshal([]byte(get(t, c, url+"/token")), &answer); err != nil {
					t.Fatal(err)
				}
				got := answer[member]
				get(t, c, url+"/user/"+got+"?plain="+got)
				if echo := post(t, c, url+"/echo", "text/plain", "it is "+got); echo != "it is "+got {
					t.Errorf("the program sends %q and gets %q", got, echo)
				}
			})
			if secret != "" {
				gone(t, filepath.Dir(path), secret)
			} else if !strings.Contains(string(onDisk(t, filepath.Dir(path))), value) {
				t.Error("an id was taken for a secret")
			}
		})
	}
}
