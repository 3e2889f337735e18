package scrub_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestClaims: the dummy of a token has the times of the token and texts as long, and its shape has nothing else of it.
func TestClaims(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	claims := `{"sub":"ann@example.com","https://x/role":"boss-of-all","exp":1999999999,"iat":1700000000.25,"pin":4711}`
	token := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims)) + "." + strings.Repeat("Kq7Xw2Lk9Vb4Nm6Tr8Yp3", 2)
	s := scrub.New(testKey, nil)
	s.String(token)
	found := s.Found()
	if len(found) != 1 || !strings.HasSuffix(found[0].Shape, ":exp=1999999999,iat=1700000000,sub=15") {
		t.Fatalf("%+v", found)
	}
	made := scrub.DummiesOf(found, func(string) bool { return false })
	if len(made) != 1 || len(made[0].Value) != len(token) {
		t.Fatalf("%+v", made)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(made[0].Value, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Sub      string
		Exp, Iat int
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if got.Exp != 1999999999 || got.Iat != 1700000000 || len(got.Sub) != len("ann@example.com") || strings.Contains(got.Sub, "ann") {
		t.Errorf("%s", raw)
	}
}
