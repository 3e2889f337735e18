package exchange

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// DefaultMaxBody is the length in bytes of the longest encoded body that is held in memory to be scanned: 64 MiB.
const DefaultMaxBody = 64 << 20

// TapOptions say how a Tap works. Nil and zero work.
type TapOptions struct {
	// PartDir is the directory of the parts of answers that still stream; it is made when it is needed. "" keeps none:
	// up to 1 MiB of an answer then waits in memory, a longer one goes to the store as it comes, and a recorder that is
	// killed leaves nothing of it.
	PartDir string
	// Replay says that answers come from a tape: a request gets the lane of the recorded one that answers it, and one of
	// its own only when it is sent on after all.
	Replay bool
	// Closed says of a replay that no request is sent on: conversations are then not followed.
	Closed bool
	// Asked, when not nil, is told of each request that has arrived whole, as the program sent it, before it is sent on or answered. An
	// error refuses it.
	Asked func(r *Request, k Key) error
	// Answered, when not nil, is told of each exchange whose answer is about to begin: its arrival, and on a replay that of the
	// recorded exchange which answers. It is told of messages of a server on a WebSocket too, by numbers that no arrival has. opener is
	// that of the request. begins is called when the first bytes of the answer are about to reach the program: others may have come to that
	// before. held, which may be nil, is told while the answer waits until others have ended or been asked for (Open.Held).
	Answered func(opener, arrival, recorded uint64) (begins func(), held func(bool))
	// Conversations follows the conversations that exchanges carry; nil for none.
	Conversations Conversations
	// MaxBody bounds, in bytes, an encoded answer and a decoded request; 0 is DefaultMaxBody. A longer one cannot be
	// scanned for secrets: it is not kept, and its record says so.
	MaxBody int64
	// TrueLength keeps the Content-Length of an answer whose stored bytes are not as many, for a replay that puts a value
	// into it for each placeholder. Without it a tape is the same whatever the secrets are.
	TrueLength bool
	// NowMS is the clock of a run that does not go by the machine's, in ms from any beginning: chunks are timed by it and have no ordinals, so
	// that they say the same in every run. Such a run's recorder may clean what it gets, so an answer is held in memory until it ends, whatever
	// PartDir says, and given to it whole (tape.Recorder.Payload); who gives the chunks bounds them. And its placeholders are numbered, so none
	// that a tape has takes the place of another where a recorded request names another secret: it would have two numbers. Nil is the machine's.
	NowMS func() int64
}

// A Tap puts the exchanges of one run on its tape. It may be used by several goroutines at once.
type Tap struct {
	rec        *tape.Recorder
	classifier Classifier
	scrubber   *scrub.Scrubber
	opts       TapOptions
	lanes      Lanes
	arrivals   atomic.Uint64
	refused    atomic.Bool
	naming     sync.RWMutex // held over the scrubbing of a request, and to change how a secret reads
	taking     sync.Mutex   // held over the arrival of a replayed request and its asking a Book
}

// NewTap returns a Tap that writes to rec. A nil rec writes nothing: requests are still scrubbed and classified, which is
// all that a replay without a tape of its own needs.
func NewTap(rec *tape.Recorder, c Classifier, s *scrub.Scrubber, opts *TapOptions) *Tap {
	t := &Tap{rec: rec, classifier: c, scrubber: s}
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.MaxBody == 0 {
		t.opts.MaxBody = DefaultMaxBody
	}
	return t
}

// Ordinal takes the tape's next ordinal; 0 without a tape.
func (t *Tap) Ordinal() uint64 { return t.rec.Ordinal() }

// Refused reports whether a request got no answer for want of a recorded one.
func (t *Tap) Refused() bool { return t.refused.Load() }

// Err is what the recorder failed with; nil while it works. What is asked from then on is on no tape.
func (t *Tap) Err() error { return t.rec.Err() }

// Begin takes a request that has arrived whole. End must follow. Errors: the Classifier's, by which the request should be
// refused; or that of a recorder that has ended, by now or for it could not keep the request's body (Err), and then it should
// get no answer. On a replay the body is kept once it is known what answers it: End then gives the recorder's error.
func (t *Tap) Begin(r *Request) (*Open, error) { return t.begin(nil, r, false) }

// BeginFrom is Begin for a request that b is to answer: what stands on its tape to the byte is identified once, however often it comes.
func (t *Tap) BeginFrom(b *Book, r *Request) (*Open, error) { return t.begin(b, r, false) }

// begin is Begin, BeginFrom where there is a Book, or where stream is set BeginStream: the body is then not kept yet.
func (t *Tap) begin(b *Book, r *Request, stream bool) (*Open, error) {
	if err := t.rec.Err(); err != nil {
		return nil, err
	}
	o := &Open{tap: t, start: time.Now(), came: r.Came, opener: r.Opener}
	if t.opts.NowMS != nil {
		o.startMS = t.opts.NowMS()
	}
	if !t.opts.Replay {
		o.arrive()
	}
	socket := AsksSocket(r.Method, r.Header)
	if socket {
		r = withoutKeys(t.scrubber, r)
	}
	on := b.like(r)
	c, like := t.standing(on, r)
	if like != nil {
		o.key = like.Key
	} else {
		c = t.clean(r)
		id, err := t.classifier.Classify(c.request)
		if err != nil {
			return nil, err
		}
		id.Key.Socket = socket
		o.key, o.identity = id.Key, id
		identify(on, c.headers, o.key)
	}
	if t.opts.Asked != nil {
		if err := t.opts.Asked(r, o.key); err != nil {
			return nil, err
		}
	}
	o.request, o.extra, o.named, o.flow = c.request, c.extra, c.named, c.flow
	if !t.opts.Replay {
		o.extra = append(o.extra, tape.NumberField(tape.ConversationKey, r.Asker)...)
	}
	o.extra = append(o.extra, tape.NumberField(tape.OpenerKey, r.Opener)...)
	o.exchange.Method, o.exchange.URL = c.request.Method, c.request.URL
	o.exchange.RequestHeaders = c.headers
	o.exchange.RequestDigest = o.key.Request
	if t.rec != nil && !stream {
		o.unkept = c.stored
	}
	if t.opts.Conversations != nil && o.key.Kind != LLM { // a call of a model carries none
		o.asked = &Request{Method: r.Method, URL: r.URL, Header: r.Header, Body: c.plain, Asker: r.Asker}
	}
	if !t.opts.Replay {
		if o.live(); o.err == nil {
			o.err = o.follow(nil, "")
		}
	}
	return o, o.err
}

// standing is clean for a request that stands on a tape to the byte, method, URL, header and body, and where it stands of those that it is
// like: nil for others. What is known to be a secret may stand in it no more than in any other.
func (t *Tap) standing(like []*Recorded, r *Request) (c cleaned, at *Recorded) {
	if !slices.ContainsFunc(like, func(rec *Recorded) bool { return rec.identified.Load() }) {
		return c, nil
	}
	t.naming.RLock()
	defer t.naming.RUnlock()
	s := t.scrubber
	s.LearnHeader(r.Header)
	if _, found := s.LearnBytes(r.Body); found || s.String(r.URL) != r.URL {
		return c, nil
	}
	fields := learnedFields(s, r.Header)
	i := slices.IndexFunc(like, func(rec *Recorded) bool {
		return rec.identified.Load() && slices.Equal(rec.Exchange.RequestHeaders, fields)
	})
	if i < 0 {
		return c, nil
	}
	request := &Request{Method: r.Method, URL: r.URL, Header: HeaderOf(fields), Body: r.Body}
	return cleaned{request: request, headers: fields, stored: r.Body, plain: r.Body}, like[i]
}

// clean scrubs a request. What its header, its query and its body say of secrets is learnt first, for any of them may hold what
// another one names. A body with a Content-Encoding is kept as it came unless a secret lies inside; one that does not decode
// cannot be scanned and is not kept.
func (t *Tap) clean(r *Request) cleaned {
	t.naming.RLock()
	defer t.naming.RUnlock()
	s, plain, encoding := t.scrubber, r.Body, r.Header.Get("Content-Encoding")
	var err error
	packed := len(plain) > 0 && encoded(encoding)
	if packed {
		if plain, err = Decode(encoding, r.Body, t.opts.MaxBody); err != nil {
			plain = r.Body
		}
	}
	s.LearnHeader(r.Header)
	s.LearnURL(r.URL)
	c := cleaned{plain: plain, flow: s.NamedInURL(r.URL)}
	hidden := false
	if err == nil {
		c.named = s.Named(r.Header.Get("Content-Type"), plain)
		_, over := s.LearnAll(c.named)
		plain, hidden = s.HideAt(plain, over), len(over) > 0
	}
	body, found := s.LearnBytes(plain)
	c.request, c.stored = &Request{Method: r.Method, URL: s.URL(r.URL), Body: body}, body
	var without []string // the fields that do not hold for what is stored
	switch {
	case err != nil:
		c.stored = nil
		c.extra = append(c.extra, bare.TextField("request_lost", "the body cannot be scanned for secrets: "+err.Error()))
	case packed && !found && !hidden:
		c.stored = r.Body
	case packed:
		c.extra = append(c.extra, bare.TextField("request_decoded", encoding))
		without = []string{"Content-Encoding", "Content-Length"}
	}
	all := learnedFields(s, r.Header)
	c.request.Header = HeaderOf(all)
	c.request.Header.Del("Content-Encoding")
	c.headers = slices.DeleteFunc(all, func(f tape.HeaderField) bool {
		return slices.Contains(without, http.CanonicalHeaderKey(f.Name))
	})
	return c
}

// learner returns what looks at an answer of a type; nil where nothing is to be looked for. An answer in parts is looked at as it
// comes: its fields are no form's.
func (t *Tap) learner(contentType string) *learner {
	kind := scrub.BodyKindOf(contentType)
	switch {
	case kind == scrub.BodyOther || !t.scrubber.NamesSay():
		return nil
	case kind == scrub.BodyParts:
		kind = scrub.BodyStream
	}
	return &learner{tap: t, contentType: contentType, kind: kind}
}

// adopt makes the placeholders of a recorded request mean what this one names in their place, where both name the same in the same order.
func (t *Tap) adopt(was, now []scrub.Named) {
	if len(now) == 0 || !slices.EqualFunc(was, now, func(a, b scrub.Named) bool { return a.Name == b.Name }) {
		return
	}
	t.naming.Lock() // no request is half scrubbed; all others wait
	defer t.naming.Unlock()
	for i := range now {
		t.scrubber.Adopt(was[i].Value, now[i].Value) // nothing where it was no placeholder
	}
}
