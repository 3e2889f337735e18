package tape_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestExchangeOf(t *testing.T) {
	call, plain := new(tape.LLMCall), new(tape.HTTPExchange)
	for _, tt := range []struct {
		kind tape.Kind
		want *tape.Exchange
	}{
		{call, &call.Exchange},
		{plain, &plain.Exchange},
		{new(tape.ClockRead), nil},
		{new(tape.Unknown), nil},
	} {
		if got := tape.ExchangeOf(tt.kind); got != tt.want {
			t.Errorf("%T: %p, want %p", tt.kind, got, tt.want)
		}
	}
}

func TestHostOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://API.test/v1":     "api.test",
		"http://h.test:8080/?a=b": "h.test:8080",
		"http://[::1]:80/":        "[::1]:80",
		"/path":                   "",
		"http://%zz/":             "",
		"":                        "",
	} {
		if got := tape.HostOf(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}
