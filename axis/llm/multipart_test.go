package llm_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	transcribeURL = "https://api.openai.com/v1/audio/transcriptions"
	filesURL      = "https://api.openai.com/v1/files"
)

// A field is one part of a form.
type field struct{ name, file, kind, content string }

// form is a POST of fields, with a boundary as the SDK would make it up.
func form(t testing.TB, url, boundary string, fields ...field) *exchange.Request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		h := make(textproto.MIMEHeader)
		disposition := `form-data; name="` + f.name + `"`
		if f.file != "" {
			disposition += `; filename="` + f.file + `"`
			h.Set("Content-Type", f.kind)
		}
		h.Set("Content-Disposition", disposition)
		p, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write([]byte(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &exchange.Request{
		Method: http.MethodPost, URL: url, Header: http.Header{"Content-Type": {w.FormDataContentType()}}, Body: body.Bytes(),
	}
}

func identify(t testing.TB, m *masks.Masker, r *exchange.Request) *exchange.Identity {
	t.Helper()
	id, err := llm.NewClassifier(m).Classify(r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

var speech = field{"file", "a.wav", "audio/wav", "RIFF\x00\xff"}

func TestTranscription(t *testing.T) {
	model, language := field{name: "model", content: "whisper-1"}, field{name: "language", content: "en"}
	a := identify(t, nil, form(t, transcribeURL, "----formdata-undici-0123456789", speech, model, language))
	if k := a.Key; k.Kind != exchange.LLM || k.Provider != "openai" || k.Endpoint != "audio.transcriptions" || k.Model != "whisper-1" {
		t.Fatalf("%+v", k)
	}
	if got := string(a.Params); got != `{"language":{"name":"language","text":"en"}}` {
		t.Errorf("params %s", got)
	}
	if got := string(a.Surface); !strings.Contains(got, `"filename":"a.wav"`) || strings.Contains(got, "undici") {
		t.Errorf("surface %s", got)
	}
	same := identify(t, nil, form(t, transcribeURL, "b17e9d1f3c5a", language, model, speech))
	if same.Key != a.Key || talkOf(same).Opening != talkOf(a).Opening {
		t.Errorf("the boundary or the order of fields matters:\n%s\n%s", a.Surface, same.Surface)
	}
	for name, fields := range map[string][]field{
		"content":      {{"file", "a.wav", "audio/wav", "RIFF\x00\xfe"}, model, language},
		"file name":    {{"file", "b.wav", "audio/wav", "RIFF\x00\xff"}, model, language},
		"content type": {{"file", "a.wav", "audio/mpeg", "RIFF\x00\xff"}, model, language},
		"language":     {speech, model, {name: "language", content: "de"}},
		"model":        {speech, {name: "model", content: "gpt-4o-transcribe"}, language},
		"one more":     {speech, model, language, {name: "temperature", content: "0"}},
		"one less":     {speech, model},
	} {
		if identify(t, nil, form(t, transcribeURL, "x", fields...)).Key == a.Key {
			t.Errorf("%s does not matter", name)
		}
	}
}

// TestUpload sees an upload match by its parts, whatever its boundary, volatile facts in a text file masked.
func TestUpload(t *testing.T) {
	batch := func(id string) field {
		return field{"file", "batch.jsonl", "application/jsonl", `{"custom_id":"` + id + `","method":"POST"}`}
	}
	purpose := field{name: "purpose", content: "batch"}
	m := masks.New(nil)
	a := identify(t, m, form(t, filesURL, "aaa", purpose, batch("0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11")))
	b := identify(t, m, form(t, filesURL, "bbb", purpose, batch("7d0f8f61-1111-4222-8333-944455556666")))
	if a.Key.Kind != exchange.HTTP || a.Key != b.Key {
		t.Errorf("%+v\n%s\n%s", a.Key, a.Surface, b.Surface)
	}
	if other := identify(t, m, form(t, filesURL, "aaa", field{name: "purpose", content: "vision"}, batch("x"))); other.Key == a.Key {
		t.Error("the purpose does not matter")
	}
	two := form(t, filesURL, "aaa", field{name: "image[]", content: "1"}, field{name: "image[]", content: "2"})
	swapped := form(t, filesURL, "aaa", field{name: "image[]", content: "2"}, field{name: "image[]", content: "1"})
	if identify(t, m, two).Key == identify(t, m, swapped).Key {
		t.Error("the order of parts of one name does not matter")
	}
}

// TestImageEdit sees several images of one name count, each one.
func TestImageEdit(t *testing.T) {
	const url = "https://api.openai.com/v1/images/edits"
	images := func(second string) *exchange.Request {
		return form(t, url, "x", field{name: "model", content: "gpt-image-1"}, field{name: "prompt", content: "a hat"},
			field{"image[]", "1.png", "image/png", "\x89PNG1"}, field{"image[]", "2.png", "image/png", second})
	}
	a, b := identify(t, nil, images("\x89PNG2")), identify(t, nil, images("\x89PNG3"))
	if a.Key.Endpoint != "images.edits" || a.Key == b.Key || a.Key.Params != b.Key.Params {
		t.Errorf("%+v\n%+v", a.Key, b.Key)
	}
}

// TestNoMultipart sees what only says that it is multipart compared byte by byte.
func TestNoMultipart(t *testing.T) {
	for name, r := range map[string]*exchange.Request{
		"cut":         {Body: []byte("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhal")},
		"no boundary": {Header: http.Header{"Content-Type": {"multipart/form-data"}}, Body: []byte("--x\r\n\r\na\r\n--x--")},
		"empty":       {},
		"other":       {Body: []byte("a=1&b=2")},
	} {
		r.Method, r.URL = http.MethodPost, transcribeURL
		if r.Header == nil {
			r.Header = http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}
		}
		if id := identify(t, nil, r); id.Key.Kind != exchange.HTTP || string(id.Surface) != string(r.Body) {
			t.Errorf("%s: %+v, %q", name, id.Key, id.Surface)
		}
	}
}

// TestFormOnATape sees an uploaded form served from a tape whatever its boundary, and what differs named where it is
// refused.
func TestFormOnATape(t *testing.T) {
	c := llm.NewClassifier(nil)
	purpose, file := field{name: "purpose", content: "batch"}, field{"file", "a.txt", "text/plain", "hello"}
	recorded := form(t, filesURL, "aaa", purpose, file)
	id := identify(t, nil, recorded)
	book, err := exchange.NewBook(all([]*tape.Record{{Kind: &tape.HTTPExchange{Exchange: tape.Exchange{
		Method: recorded.Method, URL: recorded.URL, RequestDigest: id.Key.Request, Status: http.StatusOK, Arrival: 1,
		RequestHeaders: []tape.HeaderField{{Name: "Content-Type", Value: recorded.Header.Get("Content-Type")}},
		RequestPayload: &tape.Payload{Text: string(recorded.Body), Inline: true}, Response: &tape.Payload{Inline: true},
	}}}}), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := form(t, filesURL, "bbb", field{name: "purpose", content: "vision"}, file)
	if _, ok := take(t, c, book, other); ok {
		t.Error("another purpose was answered")
	}
	rec, why := book.Nearest(identify(t, nil, other), other)
	if rec == nil || !strings.Contains(why, "vision") {
		t.Errorf("%v, %s", rec, why)
	}
	if _, ok := take(t, c, book, form(t, filesURL, "ccc", file, purpose)); !ok {
		t.Error("the same form was refused")
	}
}
