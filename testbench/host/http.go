package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

var httpFunctions = []*Function{
	{
		Name: "http.get", do: httpGet,
		Params:  []Param{{Name: "url", Type: "string"}, {Name: "headers", Type: "dict of strings", Optional: true}},
		Doc:     "Sends a GET request, and follows redirects.",
		Result:  "a dict: status, an int; headers, a dict of lower-case names; body, a string (bytes where it is not UTF-8)",
		Example: `page = http.get("https://example.com/", headers = {"accept": "text/html"})`,
	},
	{
		Name: "http.post", do: httpPost,
		Params: []Param{
			{Name: "url", Type: "string"}, {Name: "body", Type: "string or bytes"},
			{Name: "headers", Type: "dict of strings", Optional: true},
		},
		Doc:     "Sends a POST request.",
		Result:  "as of http.get",
		Example: `http.post("https://example.com/hook", json.encode({"ok": True}))`,
	},
}

func httpGet(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return a.send(ctx, b, http.MethodGet, nil, 1)
}

func httpPost(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return a.send(ctx, b, http.MethodPost, a.bytes(1), 2)
}

// maxBody is how large the body of an answer may be.
const maxBody = 64 << 20

// send sends a request to the URL that is the first argument, with the headers that the argument of that place has.
func (a *args) send(ctx context.Context, b *testbench.Bench, method string, body []byte, headers int) (any, error) {
	url := a.text(0)
	header := a.header(headers)
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.f.Name, err)
	}
	req.Header = header
	resp, err := b.Client().Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(content) > maxBody {
		err = fmt.Errorf("want a body of at most %d MiB", maxBody>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", a.f.Name, url, err)
	}
	return Object{{"status", int64(resp.StatusCode)}, {"headers", headerObject(resp.Header)}, {"body", Text(content)}}, nil
}

func (a *args) header(i int) http.Header {
	h := http.Header{}
	for _, m := range a.object(i) {
		value, ok := m.Value.(string)
		if !ok {
			a.wrong(i, "a dict of strings")
		}
		h.Add(m.Name, value)
	}
	return h
}

func headerObject(h http.Header) Object {
	o := Object{}
	for name, values := range h {
		o = append(o, Member{strings.ToLower(name), strings.Join(values, ", ")})
	}
	slices.SortFunc(o, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return o
}
