package tape

import "testing"

func TestExchangeOf(t *testing.T) {
	call, plain := new(LLMCall), new(HTTPExchange)
	for _, tt := range []struct {
		kind Kind
		want *Exchange
	}{
		{call, &call.Exchange},
		{plain, &plain.Exchange},
		{new(ClockRead), nil},
		{new(Unknown), nil},
	} {
		if got := ExchangeOf(tt.kind); got != tt.want {
			t.Errorf("%T: %p, want %p", tt.kind, got, tt.want)
		}
	}
}

func TestHostOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://API.test/v1":     "api.test",
		"http://h.test:8080/?a=b": "h.test:8080",
		"http://[::1]:80/":        "[::1]:80",
		"/path":                   "/path",
		"http://%zz/":             "http://%zz/",
		"":                        "",
	} {
		if got := HostOf(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}
