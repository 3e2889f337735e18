package scrub_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// valuesNamed returns the values that names in a body give away, by the rules of a version, 0 for all that are known.
func valuesNamed(body string, rules int) (values []string) {
	for _, v := range scrub.New(testKey, &scrub.Options{Rules: rules}).Named("application/json", []byte(body)) {
		values = append(values, v.Value)
	}
	return values
}

// quoted is a text as JSON has it.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestNamedHeaders: a header that is a member of JSON, or a line of a text in it, holds what the header would.
func TestNamedHeaders(t *testing.T) {
	for body, want := range map[string]string{
		`{"headers":{"cookie":"session=cn4Kq9ZpLm2Vt8; a=b; theme=dark-mode"}}`:    "cn4Kq9ZpLm2Vt8",
		`{"headers":{"Cookie":"sid=cn4Kq9ZpLm2Vt8; csrf=\"cn5Kq9ZpLm2Vt8\""}}`:     "cn4Kq9ZpLm2Vt8 cn5Kq9ZpLm2Vt8",
		`{"set-cookie":"sid=cn4Kq9ZpLm2Vt8; Path=/; Expires=Wed, 21 Oct 2026"}`:    "cn4Kq9ZpLm2Vt8",
		`{"set-cookie":["sid=cn4Kq9ZpLm2Vt8; Path=/","u=cn5Kq9ZpLm2Vt8"]}`:         "cn4Kq9ZpLm2Vt8 cn5Kq9ZpLm2Vt8",
		`{"authorization":"cn4Kq9ZpLm2Vt8cn4Kq9"}`:                                 "cn4Kq9ZpLm2Vt8cn4Kq9",
		`{"Authorization":"Bearer cnr4k9zp"}`:                                      "cnr4k9zp",
		`{"proxy-authorization":"token cnr4k9zp"}`:                                 "cnr4k9zp",
		`{"Authorization":"Basic Y25ydXNlcjpjbnJwYXNzMQ=="}`:                       "cnrpass1 Y25ydXNlcjpjbnJwYXNzMQ==",
		`{"x-auth":"cn4Kq9ZpLm2Vt8","x-session-id":"cn5Kq9ZpLm2Vt8cn5Kq"}`:         "cn4Kq9ZpLm2Vt8 cn5Kq9ZpLm2Vt8cn5Kq",
		quoted("Cookie: session=cn4Kq9ZpLm2Vt8\r\nSet-Cookie: s=cn5Kq9ZpLm2Vt8"):   "cn4Kq9ZpLm2Vt8 cn5Kq9ZpLm2Vt8",
		quoted("curl -H 'Authorization: Bearer cnr4k9zp' -H 'Cookie: a=cn5Kq9Zp'"): "cnr4k9zp cn5Kq9Zp",
		quoted("GET / HTTP/1.1\nX-Api-Key: cn4Kq9ZpLm2Vt8\n"):                      "cn4Kq9ZpLm2Vt8",
		`[{"name":"Cookie","value":"sid=cn4Kq9ZpLm2Vt8"}]`:                         "cn4Kq9ZpLm2Vt8",

		`{"cookie":true,"cookies":"sid=cn4Kq9ZpLm2Vt8","cookie":"eat some; they = good1x"}`: "",
		`{"cookie":"theme=dark-mode; region=us-east-1; n=1700000000"}`:                      "",
		`{"cookie":"sid=${SESSION_COOKIE}; s=<your cookie>"}`:                               "",
		`{"authorization":"required","Authorization":"Bearer YOUR_TOKEN"}`:                  "",
		`{"authorization":"rbac.authorization.k8s.io/v1beta1"}`:                             "",
		`{"Authorization":"Bearer ${API_TOKEN1}","authentication":"basic auth is used"}`:    "",
		`{"auth":"none","auth":{"type":"oauth2-client-credentials"}}`:                       "",
		quoted("The cookie: made of flour1. Authorization: see RFC7235 and others"):         "",
		quoted("const auth: string = getAuth1(); sort-key: created_at1"):                    "",
	} {
		checkNamed(t, body, want)
	}
}

// TestNamedPairs: the name of a value may stand beside it.
func TestNamedPairs(t *testing.T) {
	for body, want := range map[string]string{
		`[{"name":"API_KEY","value":"cnrnv4Kq9Zp"},{"name":"B","value":"cn5Kq9ZpLm2Vt8"}]`: "cnrnv4Kq9Zp",
		`{"key": "password", "value": "cnr hunter"}`:                                       "cnr hunter",
		`{"Name":"DB_PASSWORD","Type":"SecureString","Value":"cnrhunter"}`:                 "cnrhunter",

		`[{"name":"password"},{"value":"cnrnv4Kq9Zp"}]`:                    "",
		`{"name":"password","in":{"a":1},"value":"cnrnv4Kq9Zp"}`:           "",
		`{"name":"max_tokens","value":"cn4Kq9ZpLm2Vt8cn4Kq9"}`:             "",
		`{"name":"API_KEY","valueFrom":"cn4Kq9ZpLm2Vt8"}`:                  "",
		`{"name":"API_KEY","value":"${API_KEY}"}`:                          "",
		`{"name":"login","properties":{"password":{"type":"string"}}}`:     "",
		`{"name":["password"],"value":"cnrnv4Kq9Zp"}`:                      "",
		`{"name":"password","name":"city","value":"cnrnv4Kq9Zp of place"}`: "",
	} {
		checkNamed(t, body, want)
	}
}

// TestNamedInTexts: variables and flags of commands in strings of JSON, and what only looks like them.
func TestNamedInTexts(t *testing.T) {
	for text, want := range map[string]string{
		"API_KEY=cnr4Kq9ZpLm":                                        "cnr4Kq9ZpLm",
		"PASSWORD=cnr4hunter ./run --token cnrflag4Kq9ZpLm2":         "cnr4hunter cnrflag4Kq9ZpLm2",
		"A=1\nexport DB_PASSWORD='cnr4Kq,hunter;x'\nB=2":             "cnr4Kq,hunter;x",
		"\tSECRET_TOKEN=\"cn4Kq9ZpLm2Vt8cn4Kq9\" x":                  "cn4Kq9ZpLm2Vt8cn4Kq9",
		"run --password=cnr4hunter --api-key 'cnr4Kq9ZpLm'":          "cnr4hunter cnr4Kq9ZpLm",
		"docker run -e OPENAI_API_KEY=cnr4Kq9ZpLm img":               "cnr4Kq9ZpLm",
		"--password-file path1/to/it":                                "",
		"--password --verbose1x":                                     "",
		"--private-key certs/server1.pem --token ${MY_TOKEN_1}":      "",
		"--token the password is wrong":                              "",
		"TOKEN_COUNT=12 MAX_TOKENS=1000000000 API_KEY=short1":        "",
		"API_KEY=$OTHER_API_KEY1 PASSWORD=$(pass show x1) KEY=`a1b`": "",
		"PASSWORD_FILE=/run/secrets/db1 API_KEY=<your-key-1>":        "",
		"const API_KEY=process.env.API_KEY; token=getToken1(user1)":  "",
		"const apiKey = getKey(); password=password1, key=lambda x":  "",
		"the password is wrong; PASSWORD=required":                   "",
		"https://a.test/?page_token=cn4Kq9ZpLm2Vt8cn4Kq9":            "",
		"token=cn4Kq9ZpLm2Vt8cn4Kq9 cache_key=cn4Kq9ZpLm2Vt8":        "",
		"---------- --- -- a --":                                     "",
		"MONKEY=cn4Kq9ZpLm2Vt8 SORT_KEY=created_at":                  "",
	} {
		checkNamed(t, `{"cmd":`+quoted(text)+`}`, want)
	}
	for body, want := range map[string]string{
		`{"args":["--password","cnrhunter"]}`:                   "cnrhunter",
		`{"args":[ "-v", "--token" , "cn4Kq9ZpLm2Vt8cn4Kq9" ]}`: "cn4Kq9ZpLm2Vt8cn4Kq9",
		`{"args":["--password","--verbose-mode"]}`:              "",
		`{"args":["--password-file","cn4Kq9ZpLm2Vt8cn"]}`:       "",
		`{"args":["--private-key","certs/server.pem"]}`:         "",
		`{"--password":"cnrhunter"}`:                            "cnrhunter",
	} {
		checkNamed(t, body, want)
	}
}

// checkNamed fails where other values are found than want has, or one in what another producer wrote.
func checkNamed(t *testing.T, body, want string) {
	t.Helper()
	if got := strings.Join(valuesNamed(body, 0), " "); got != want {
		t.Errorf("%s: got %q, want %q", body, got, want)
	}
	if got := valuesNamed(body, scrub.RulesForeign); len(got) > 0 {
		t.Errorf("%s: of another producer %q", body, got)
	}
}

// TestNamedInPieces: what the next piece may go on with is none.
func TestNamedInPieces(t *testing.T) {
	s := scrub.New(testKey, nil)
	for _, text := range []string{"API_KEY=cnr4Kq9ZpLm", "Cookie: s=cn4Kq9ZpLm2Vt8", "x --token cnrflag4Kq9ZpLm2", `["--password","cnrhunter`} {
		if found := s.NamedInLines([]byte(text), true); len(found) > 0 {
			t.Errorf("%s: got %v", text, found)
		}
		if found := s.NamedInLines([]byte(text+"\"\n"), true); len(found) != 1 {
			t.Errorf("%s, ended: got %v", text, found)
		}
	}
}

// TestNamedInTool: of a message of MCP, names that say so make a secret of any string but words of schemas and settings; numbers and null
// are none, nor are the marks of lists.
func TestNamedInTool(t *testing.T) {
	for body, want := range map[string]string{
		`{"token":"abc12","n":1}`:                                             "abc12",
		`{"authorization":"Bearer zz99"}`:                                     "Bearer zz99",
		`{"Authorization":"Bearer cnr4k9zp"}`:                                 "cnr4k9zp",
		`{"api_key":"k1","apiKey":"l1","api-key":"m1","secret":"disabled"}`:   "k1 l1 m1 disabled",
		`{"password":"a1","access_token":"b1","refreshToken":"c1"}`:           "a1 b1 c1",
		`{"client_secret":"a1","credentials":["b1","c1"],"private_key":"d1"}`: "a1 b1 c1 d1",
		`{"cookie":"sid=a1"}`:                                                 "sid=a1",
		`{"text":` + quoted("api_key=abcdef12345678\nsecret=s3cr3tv4l") + `}`: "abcdef12345678 s3cr3tv4l",

		`{"credentials":"include","cookie":"essential","token":"none","authorization":"Required","api_key":"true"}`: "",
		`{"password":"string","token":["required","null"],"secret":"off","token":"abc"}`:                            "",
		`{"token":"ab1","secret":"abcd","password":"off1"}`:                                                         "ab1 abcd off1",

		`{"input_tokens":12,"max_tokens":"12","token":null,"token":17,"token_type":"Bearer"}`:                                            "",
		`{"nextPageToken":"abc12","pageToken":"CAUQAA","continuation_token":"x","nextCursor":"abc","cursor":"YWJj","progressToken":"p"}`: "",
		`{"properties":{"token":{"type":"string"}},"required":["token","password"]}`:                                                     "",
		`{"text":` + quoted("token=getToken1(user1), password=required secret=a.b.c") + `}`:                                              "",
	} {
		for _, answer := range []bool{false, true} {
			var got []string
			for _, v := range scrub.New(testKey, nil).NamedInTool(answer, []byte(body)) {
				got = append(got, v.Value)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: got %q, want %q", body, got, want)
			}
		}
	}
}
