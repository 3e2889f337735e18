package scrub_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestFindNamed says of lines what a name in them gives away.
func TestFindNamed(t *testing.T) {
	s := scrub.New(testKey, nil)
	for line, want := range map[string]string{
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYq8Zr2LkTnA": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYq8Zr2LkTnA",
		"export MYSQL_PASSWORD='correct horse'":                            "correct horse",
		"MYSQL_PASSWORD=Tr0ub4dor&3xyz":                                    "Tr0ub4dor&3xyz",
		"< Set-Cookie: sid=Zx81kLmQ02pTr5vY; Path=/; theme=dark-mode":      "Zx81kLmQ02pTr5vY",
		`  "api_key": "Zx81kLmQ02pTr5vYZx81kLmQ",`:                         "Zx81kLmQ02pTr5vYZx81kLmQ",
		"> X-Api-Key: Zx81kLmQ02pTr5vYZx81kLmQ\r\n":                        "Zx81kLmQ02pTr5vYZx81kLmQ",
		"token: Bearer Zx81kLmQ02pTr5vYZx81kLmQ":                           "Zx81kLmQ02pTr5vYZx81kLmQ",
		"api_key=abcdef12345678":                                           "abcdef12345678",
		"apikey=abcdef12345678&x=1":                                        "abcdef12345678",
		"> api-key: abcdef12345678":                                        "abcdef12345678",
		"secret = 'abcdef12345678'":                                        "abcdef12345678",
		"token:abcdef12345678;":                                            "abcdef12345678",
		"db.password=hunter22":                                             "hunter22",
		"password: 83746152":                                               "83746152",
		`{"token":"abc12","authorization":"Bearer zz99"}`:                  "abc12 Bearer zz99",
		`"input_tokens":12,"max_tokens":"4096","token":null,"password":""`: "",
		"token_type=urlencoded12 page_token=abcdef12345678":                "",
		"token: 12345678 tokens=abcdefgh1":                                 "",
		"secret: enabled_by_default, password = changeme":                  "",
		"token = parser2.next; secret := config_v2":                        "",
		"keys: up/down, q to quit":                                         "",
		"password = os.Getenv(\"PGPASSWORD\")":                             "",
		"token := strings.TrimSpace(line2Text)":                            "",
		"Password: ":                                                       "",
		"API_KEY=${OTHER_KEY_NAME}":                                        "",
		"KEY_FILE=/home/ann/key.pem":                                       "",
		"2026-11-22T10:04:17 level=info status=200 path=/keys/list":        "",
		"sort_key: created_at":                                             "",
	} {
		var got []string
		for _, r := range s.FindNamed([]byte(line)) {
			got = append(got, line[r.Start:r.End])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
