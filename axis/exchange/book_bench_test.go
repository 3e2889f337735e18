package exchange_test

import (
	"fmt"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// equal is how many equal requests the benchmarks of them ask.
const equal = 8000

// BenchmarkTakeEqual answers equal requests, every second of which is a second attempt, and reports what one costs.
func BenchmarkTakeEqual(b *testing.B) {
	var kinds []tape.Kind
	for i := range equal {
		p := post(uint64(i+1), url, "x")
		if i%2 == 1 {
			p.RequestHeaders = []tape.HeaderField{{Name: "X-Attempt", Value: "1"}}
		}
		kinds = append(kinds, p)
	}
	for b.Loop() {
		b.StopTimer()
		book := newBook(b, kinds...)
		tap := exchange.NewTap(nil, classifier{}, newScrubber(), &exchange.TapOptions{Replay: true})
		var asked []*exchange.Open
		for i := range equal {
			h := headers()
			if i < equal/2 {
				h = headers("X-Attempt", "1")
			}
			o, err := tap.Begin(&exchange.Request{Method: "POST", URL: url, Header: h, Body: []byte("x")})
			if err != nil {
				b.Fatal(err)
			}
			asked = append(asked, o)
		}
		b.StartTimer()
		for _, o := range asked {
			if _, ok := o.Take(book); !ok {
				b.Fatal("not on the tape")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/equal, "ns/request")
}

// BenchmarkLanesEqual begins the same conversation over and over, and reports what one beginning costs.
func BenchmarkLanesEqual(b *testing.B) {
	id := talk("u1")
	for b.Loop() {
		var lanes exchange.Lanes
		for range equal {
			lanes.Done(lanes.Begin(id, url), false)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/equal, "ns/request")
}

// BenchmarkLanesGrow lets conversations of one opening grow to 20 turns each, in turn, and reports what one request costs.
func BenchmarkLanesGrow(b *testing.B) {
	const turns = 20
	for _, n := range []int{20, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			talks := make([]*exchange.Identity, n)
			for i := range talks {
				texts := []string{"u1"}
				for len(texts) < 2*turns {
					texts = append(texts, fmt.Sprintf("%d of %d", len(texts), i))
				}
				talks[i] = talk(texts...)
			}
			for b.Loop() {
				var lanes exchange.Lanes
				for turn := range turns {
					for _, whole := range talks {
						said := whole.Talk()
						said.Turns = said.Turns[:2*turn+1]
						id := &exchange.Identity{Key: whole.Key, Talk: func() exchange.Talk { return said }}
						lanes.Done(lanes.Begin(id, url), false)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*turns), "ns/request")
		})
	}
}

// BenchmarkRefuse asks for as much as is recorded, and none of it, and reports what one refusal costs: as much beside many as beside few.
func BenchmarkRefuse(b *testing.B) {
	for _, n := range []int{250, 2500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var kinds []tape.Kind
			for i := range n {
				kinds = append(kinds, post(uint64(i+1), fmt.Sprintf("%s/%d", url, i), "x"))
			}
			book := newBook(b, kinds...)
			book.TellSideTraffic(nil)
			tap := exchange.NewTap(nil, classifier{}, newScrubber(), &exchange.TapOptions{Replay: true})
			for b.Loop() {
				o, err := tap.Begin(&exchange.Request{Method: "POST", URL: url + "/another", Header: headers(), Body: []byte("x")})
				if err != nil {
					b.Fatal(err)
				}
				if _, ok := o.Take(book); ok {
					b.Fatal("on the tape")
				}
				book.Nearest(o.Identity(), o.Request())
			}
		})
	}
}
