package exchange

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Recorded is one exchange of a tape, as a Book hands it out.
type Recorded struct {
	Key      Key
	Seq      uint64 // of its record
	Lane     string
	Arrival  uint64
	Exchange *tape.Exchange  // of a socket, what its ws_open says, with the status 101
	Socket   *RecordedSocket // nil for what is no socket
	// Length is the Content-Length of the answer where the stored bytes are not as many; -1 where it had none, or where that
	// stands in the header.
	Length int64
	// Trailers are the fields that came behind the body; nil for none.
	Trailers http.Header

	endedMS int64     // when it ended, in ms since the run began that recorded it
	wallMS  int64     // the same, in Unix epoch ms
	g       uint64    // of its record
	equals  *equals   // nil for none
	order   *EndOrder // of conversations that went on beside its own; nil for none
	caller  string    // who took the answer, where that has an order
	opcode  int       // of a turn over a socket: of the server's messages
	ownTurn bool      // of a turn over a socket: the server began it

	extra []tape.Field // the further keys of its record

	after []int // how far the request had come (keyAfter); nil where all of it came before the answer

	identified atomic.Bool // a request that stands here to the byte was found to have this Key

	usage     []byte // of a model, as JSON; nil for none
	lane.Item        // guarded by the Book
	held      bool   // likewise: it stands behind the point of a Fork, and is taken for served
}

// maxPatience bounds what the word of a tape adds to a patience.
const maxPatience = 7 * 24 * time.Hour

// Patience is how long the end of the answer, which the program had cancelled, waits for it to do so again: least, and for as
// long as the run that recorded it had gone on by then, of several on one tape its own. Whatever clock the program went by,
// that of the request, of an attempt or of all of the run, had begun by the run's begin; a replay at full speed comes to the
// request long before that clock strikes.
func (r *Recorded) Patience(least time.Duration) time.Duration {
	ms := min(max(r.endedMS, 0), maxPatience.Milliseconds())
	return least + time.Duration(ms)*time.Millisecond
}

// endedBefore reports whether r had ended when x did.
func (r *Recorded) endedBefore(x *Recorded) bool {
	return cmp.Or(cmp.Compare(r.g, x.g), cmp.Compare(r.endedMS, x.endedMS), cmp.Compare(r.Seq, x.Seq)) < 0
}

// span is when the request came and when the exchange ended: by the recorder's ordinals, which are exact, or where the tape has none in ms
// since the recording began.
func (r *Recorded) span() span {
	if r.g == 0 {
		return span{r.begun(), r.endedMS}
	}
	return span{int64(r.arrived()), int64(r.g)}
}

// opener is the spawn_id of the process or thread that opened the connection; 0 where that is not known.
func (r *Recorded) opener() uint64 { return numberIn(r.extra, tape.OpenerKey) }

// arrived is the recorder's ordinal at which a request arrived, as exactly as the tape has it.
func (r *Recorded) arrived() uint64 { return cmp.Or(numberIn(r.extra, tape.ArrivedKey), r.came()) }

// wallSpan is when that was in Unix epoch ms.
func (r *Recorded) wallSpan() span { return span{r.wallMS - (r.endedMS - r.begun()), r.wallMS} }

// begun is when a request came, or later, in ms since the run began.
func (r *Recorded) begun() int64 {
	if n := len(r.Exchange.Stream); n > 0 {
		return r.endedMS - r.Exchange.Stream[n-1].TMS
	}
	return r.endedMS
}

// came is the recorder's ordinal at which a request came, or a later one.
func (r *Recorded) came() uint64 {
	return cmp.Or(numberIn(r.extra, placeKey), r.answeredAt())
}

// answeredAt is the recorder's ordinal at which the answer began.
func (r *Recorded) answeredAt() uint64 {
	if len(r.Exchange.Stream) > 0 {
		return r.Exchange.Stream[0].G
	}
	return r.g
}

// passed is the recorder's ordinal at which the last of an answer was passed on: what the program did later it may have done upon that.
func (r *Recorded) passed() uint64 {
	if n := len(r.Exchange.Stream); n > 0 {
		return cmp.Or(r.Exchange.Stream[n-1].G, r.g)
	}
	return r.g
}

// soon is how much earlier, or less, a thread or process may be at its next request than it was while recording, on a machine that had much to do.
const soon = 500 * time.Millisecond

// soonAfter reports whether a request came so soon after the end of an answer that it may come before it: it was under way by then, and had not arrived, or
// is another thread's, or another process's.
func (r *Recorded) soonAfter(prior *Recorded) bool {
	by, other := r.opener(), prior.opener()
	return r.came() < prior.passed() || by != 0 && other != 0 && by != other && r.begun()-prior.endedMS < soon.Milliseconds()
}

// Response is the recorded answer to req as net/http gives one, reasons of a server's own apart, which are not kept, and without its body,
// which has size bytes. Its trailers are announced;
// GiveTrailers says them.
func (r *Recorded) Response(req *http.Request, size int64) *http.Response {
	ex := r.Exchange
	res := &http.Response{
		Status: strconv.Itoa(ex.Status) + " " + cmp.Or(http.StatusText(ex.Status), "status code "+strconv.Itoa(ex.Status)), StatusCode: ex.Status, Proto: r.Proto(), Header: HeaderOf(ex.ResponseHeaders), Request: req,
	}
	var ok bool
	if res.ProtoMajor, res.ProtoMinor, ok = http.ParseHTTPVersion(res.Proto); !ok {
		res.Proto, res.ProtoMajor, res.ProtoMinor = "HTTP/1.1", 1, 1
	}
	res.ContentLength = FittingLength(res.Header, ex, size)
	if len(r.Trailers) > 0 {
		res.Trailer = make(http.Header, len(r.Trailers))
		for name := range r.Trailers {
			res.Trailer[name] = nil
		}
	}
	return res
}

// GiveTrailers puts the values of the trailers into the answer that Response gave, as net/http does when the body has come to its end.
func (r *Recorded) GiveTrailers(res *http.Response) { maps.Copy(res.Trailer, r.Trailers) }

// Proto is the protocol that the recorded answer came in: "HTTP/1.1" where the tape does not say.
func (r *Recorded) Proto() string {
	var proto string
	if raw := tape.FieldValue(r.extra, bare.KeyProto); raw == nil || json.Unmarshal(raw, &proto) != nil {
		return "HTTP/1.1"
	}
	return proto
}

// decided reports whether it is known which socket of the replay r is. The caller holds the Book's mu.
func (r *Recorded) decided() bool { return r.Served && r.Socket.choice == nil }

// RequestOf is a request of net/http as a Tap takes it, with what ReadBody read of it. What it asks for is the host that it names.
func RequestOf(req *http.Request, body []byte) *Request {
	u := *req.URL
	u.Host = cmp.Or(req.Host, u.Host)
	r := &Request{Method: cmp.Or(req.Method, http.MethodGet), URL: bare.URL(&u), Header: req.Header, Body: body}
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	return r
}

// ReadBody reads and closes the body of a request of net/http. One of more than limit bytes is an error that wraps ErrTooLarge.
func ReadBody(req *http.Request, limit int64) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	b, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: the request to %s has more than %d bytes", ErrTooLarge, req.URL.Host, limit)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Outgoing is the request that leaves: what it was, with the body that ReadBody read of it.
func Outgoing(ctx context.Context, req *http.Request, body []byte) *http.Request {
	out := req.WithContext(ctx)
	if req.Body == nil || req.Body == http.NoBody {
		return out
	}
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out
}
