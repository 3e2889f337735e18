package scrub

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Programs look into the tokens that they get: when one ends, whose it is. So the shape of a JSON Web Token tells its times,
// which open nothing, and the lengths of the texts of a few claims that most tokens have. Other claims are not told, not
// even by name.
var (
	timeClaims = []string{"exp", "iat", "nbf", "auth_time"}
	textClaims = []string{"sub", "iss", "aud", "jti"}
)

const (
	maxClaimText = 128 // bytes
	maxTime      = 1e11
)

// claimsOf describes the claims of a token by its second part: exp=1999999999,sub=3; "" where it tells nothing.
func claimsOf(part string) string {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	var claims map[string]any
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	var told []string
	for _, name := range timeClaims {
		if at, ok := claims[name].(float64); ok && at >= 0 && at < maxTime {
			told = append(told, name+"="+strconv.FormatInt(int64(at), 10))
		}
	}
	for _, name := range textClaims {
		if text, ok := claims[name].(string); ok && len(text) <= maxClaimText {
			told = append(told, name+"="+strconv.Itoa(len(text)))
		}
	}
	return strings.Join(told, ",")
}

// dummyClaims returns the beginning of an object with the claims that claimsOf told: times as they were, texts of their
// lengths. What is none of these is left out.
func dummyClaims(rng *rand.Rand, told string) string {
	var members []string
	for claim := range strings.SplitSeq(told, ",") {
		name, number, _ := strings.Cut(claim, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil || n < 0:
		case slices.Contains(timeClaims, name) && n < maxTime:
			members = append(members, `"`+name+`":`+strconv.FormatInt(n, 10))
		case slices.Contains(textClaims, name) && n <= maxClaimText:
			members = append(members, `"`+name+`":"`+randomOf(rng, int(n), "a")+`"`)
		}
	}
	return "{" + strings.Join(members, ",")
}
