package scrub

import (
	"slices"
	"strings"
)

// searchable reports whether a known value can be searched for anywhere without replacing what is no secret.
func searchable(value string) bool {
	if len(value) < minKnown || isPlaceholder(value) {
		return false
	}
	return strings.Trim(value, value[:1]) != "" && !slices.Contains(commonWords, strings.ToLower(value))
}

// commonWords are values of 8 bytes or more that stand in variables like API_KEY and in ordinary text too.
var commonWords = []string{
	"12345678", "123456789", "1234567890", "administrator", "anonymous", "anything", "api-key", "api_key", "authorization",
	"bearer token", "changeme", "client-secret", "client_secret", "credential", "credentials", "database", "default_key",
	"developer", "development", "disabled", "dummy-key", "dummy_key", "dummykey", "dummy-api-key", "enabled", "environment",
	"example-key", "fake-key", "fake_key", "fake-api-key", "javascript", "keychain", "keystore", "localhost", "localhost:8080",
	"localhost:3000", "no-key-required", "not-needed", "not-required", "not_needed", "password", "password1", "password123",
	"placeholder", "postgres", "postgresql", "private-key", "private_key", "production", "redacted", "required", "secret-key",
	"secret_key", "secretkey", "something", "test-key", "test_key", "test-api-key", "testing1", "undefined", "unlimited",
	"username", "username:password", "user:password", "xxxxxxxx", "your-api-key", "your_api_key",
}
