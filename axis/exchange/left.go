package exchange

import "github.com/tapedeck-dev/tapedeck/tape"

// left reports whether an exchange that ends with errText is one whose answer the tape gives and the program did not wait
// for. An answer that was cut while recording ends with an error too: to have it as it was recorded is right as well.
func (o *Open) left(errText string) bool {
	return errText != "" && o.taken != nil && o.book.store != nil && !o.book.isDamaged(o.taken)
}

// recorded is the answer that the Book gave, as the recording keeps it.
func (o *Open) recorded() answer {
	x := o.taken.Exchange
	if x.Response == nil {
		return answer{}
	}
	return answer{chunks: x.Stream, store: func(rec *tape.Recorder) (*tape.Payload, error) {
		r, err := x.Response.Open(o.book.store)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return payloadFrom(rec, r)
	}}
}
