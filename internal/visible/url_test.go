package visible

import "testing"

func TestWithoutUser(t *testing.T) {
	for given, want := range map[string]string{
		"http://127.0.0.1:8080/v1":      "http://127.0.0.1:8080/v1",
		"http://ann:hunter2@host/v1":    "http://***@host/v1",
		"ftp://ann:hun/te@r2@host:bad/": "ftp://***@host:bad/",
		"ann:hunter2@host":              "***@host",
		"x=http://ann:hunter2@host":     "x=http://***@host",
		"https://sometoken@host?q=a":    "https://***@host?q=a",
		"":                              "",
	} {
		if got := WithoutUser(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

func TestWithoutKeys(t *testing.T) {
	for given, want := range map[string]string{
		"http://127.0.0.1:8080/v1":     "http://127.0.0.1:8080/v1",
		"http://ann:hunter2@host/v1":   "http://***@host/v1",
		"http://host/v1?key=a":         "http://host/v1?***",
		"http://host#key":              "http://host?***",
		"ann:hunter2@host?key=a":       "***@host?***",
		"http://ann:hun?ter2@host":     "http://***",
		"http://ann:hunter2@h?key=a@b": "http://***",
		"ann:hun?ter2@host":            "***",
		"":                             "",
	} {
		if got := WithoutKeys(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
