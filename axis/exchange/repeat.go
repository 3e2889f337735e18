package exchange

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ofAnswer are the further keys of a record that say something of its answer.
var ofAnswer = []string{"response_decoded", trueLength, bare.KeyTrailers, bare.KeyProto}

// EndRecorded is End in the place of Replay and Chunk: what is recorded is the recorded answer that Take found, as it stands on
// its tape, however much of it the program read; so a replay of a replay has the same to give. errText is what cut the answer,
// as it was recorded or as it came now. timed keeps the times of its chunks, which else are 0. Without an answer that Take found
// it is End.
func (o *Open) EndRecorded(errText string, timed bool) error {
	if o.ended || o.taken == nil {
		return o.End(errText)
	}
	was := o.taken.Exchange
	o.exchange.Status, o.exchange.ResponseHeaders = was.Status, was.ResponseHeaders
	for _, name := range ofAnswer {
		if value := tape.FieldValue(o.taken.extra, name); value != nil {
			o.extra = append(o.extra, tape.Field{Name: name, Value: value})
		}
	}
	if o.tap.rec != nil && was.Response != nil {
		o.body = &passedBody{recorded: o.taken, from: o.from, at: chunkMap{chunks: chunksAgain(was.Stream, timed), total: was.Response.Len}}
	}
	return o.End(errText)
}

// chunksAgain are recorded chunks as those of another recording.
func chunksAgain(chunks []tape.Chunk, timed bool) []tape.Chunk {
	chunks = slices.Clone(chunks)
	for i := range chunks {
		chunks[i].G = 0
		if !timed {
			chunks[i].TMS = 0
		}
	}
	return chunks
}

// Asked is the record of the exchange without an answer, for who compares what was asked. No store gets anything of it.
func (o *Open) Asked() tape.Kind {
	asked := *o
	asked.exchange.Lane, asked.exchange.Error = "", ""
	if len(o.unkept) > 0 {
		asked.exchange.RequestPayload, _ = tape.MakePayload(discarded{}, o.unkept)
	}
	k, _ := asked.kind()
	return k
}

// Proto is the protocol that the recorded answer came in: "HTTP/1.1" where the tape does not say.
func (r *Recorded) Proto() string {
	var proto string
	if raw := tape.FieldValue(r.extra, bare.KeyProto); raw == nil || json.Unmarshal(raw, &proto) != nil {
		return "HTTP/1.1"
	}
	return proto
}
