package foreign

import (
	"net/http"
	"time"
)

// A message is one exchange as a foreign file tells it. Package gob puts it aside.
type message struct {
	Where  string // in the file, for people
	Method string
	URL    string // absolute
	Header http.Header
	Body   []byte
	Unsent string // why there is no body; "" where there is, or none was sent

	Status  int // 0 where nothing answered
	Answer  http.Header
	Content []byte // the body of the answer
	Lost    string // why there is no content; "" where there is
	Proto   string // of the answer, as the file says it; "" for HTTP/1.1
	Trailer http.Header
	Cut     string // what cut the exchange, in the words of a tape; "" for nothing

	At   time.Time     // when the request was sent; zero where the file does not say
	Took time.Duration // until the answer had come
}
