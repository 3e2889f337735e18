package matching

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// TestFixedIDs has clients that ask for items side by side, again and again, by nothing but the UUID in the URL, which a
// mask takes out of the key.
func TestFixedIDs(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		p.each(16, func(i int) {
			item := uuid(rand.New(rand.NewPCG(uint64(i), 7)))
			var got []string
			for range sized(5, 50) {
				text, err := p.tool(t.Context(), "/tool/item/"+item)
				if err != nil {
					p.run.t.Errorf("item %d: %v", i, err)
				}
				got = append(got, text)
			}
			p.note("client %02d: %s", i, strings.Join(got, " "))
		})
	}
	s.prove(t)
}

// TestMadeUpIDs has clients that each begin a job under an id that they make up, another one in each run, and then ask for
// the job by that alone. What the job is stands in the first request only.
func TestMadeUpIDs(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		p.each(16, func(i int) {
			id := uuid(rand.New(rand.NewPCG(uint64(i), 7+p.seed)))
			got := []string{p.post("/tool/job/"+id, fmt.Sprintf("job number %d", i))}
			for range sized(5, 50) {
				got = append(got, p.post("/tool/job/"+id, "how far?"))
			}
			p.note("client %02d: %s", i, numbers(got))
		})
	}
	s.prove(t)
}

// TestTenants has clients that ask the same and say who they are in a header.
func TestTenants(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		p.each(16, func(i int) {
			var got []string
			for range sized(5, 50) {
				got = append(got, p.post("/tool/inbox", "what is new?", "X-Tenant", fmt.Sprint("tenant-", i)))
			}
			p.note("client %02d: %s", i, numbers(got))
		})
	}
	s.prove(t)
}

// post sends a body to the tools, and returns the text of the answer. headers are names and values in turn.
func (p *program) post(path, body string, headers ...string) string {
	req, err := http.NewRequestWithContext(p.run.t.Context(), http.MethodPost, "http://"+tools+path, strings.NewReader(body))
	if err != nil {
		p.run.t.Error(err)
		return ""
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := p.h1.Do(req)
	if err != nil {
		p.run.t.Errorf("%s: %v", path, err)
		return ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.run.t.Errorf("%s: status %d, %v, %s", path, res.StatusCode, err, b)
	}
	return string(b)
}

// numbers is what the upstream numbered its answers by.
func numbers(answers []string) string {
	var out []string
	for _, a := range answers {
		_, number, _ := strings.Cut(a, " number ")
		number, _, _ = strings.Cut(number, ".")
		out = append(out, number)
	}
	return strings.Join(out, " ")
}

// uuid makes one up.
func uuid(r *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Uint32()>>16, r.Uint32()>>20, r.Uint32()>>20, r.Uint64()>>16)
}

// TestPolls has one caller that asks the same again and again until it is done, with headers that are drawn for each
// request, as tracing does: the answers come in their order.
func TestPolls(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		var got []string
		for range sized(30, 300) {
			got = append(got, p.post("/tool/job", "done?", "X-Sampled", fmt.Sprint(p.free.IntN(2)), "X-Trace", fmt.Sprint(p.free.Uint64())))
		}
		p.note("%s", numbers(got))
	}
	s.prove(t)
}

// TestSwappedIDs has two callers that say the same two ids in other places.
func TestSwappedIDs(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	ids := []string{uuid(rand.New(rand.NewPCG(1, 7))), uuid(rand.New(rand.NewPCG(2, 7)))}
	s.program = func(p *program) {
		p.each(2, func(i int) {
			var got []string
			for range sized(5, 50) {
				got = append(got, p.post("/tool/move", "from "+ids[i]+" to "+ids[1-i]))
			}
			p.note("caller %d: %s", i, numbers(got))
		})
	}
	s.prove(t)
}

// TestDays has callers that ask for a day each, side by side, in another order in each run. Side by side they must be in the recording
// too: of requests that came one after the other the order is the program's own, and a date may be today's.
func TestDays(t *testing.T) {
	const days = 10
	s := &scenario{upstream: &upstream{crowd: days}}
	s.program = func(p *program) {
		order := p.free.Perm(days)
		p.each(len(order), func(i int) {
			got := p.post(fmt.Sprintf("/tool/day?date=2026-11-%d", 10+order[i]), "")
			p.note("day %d: %s", order[i], numbers([]string{got}))
		})
	}
	s.prove(t)
}
