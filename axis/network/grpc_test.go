package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// message is one of gRPC: a flag, its length, its bytes.
func message(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

// readMessage reads one.
func readMessage(r io.Reader) (string, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// grpcServer answers gRPC calls in HTTP/2 alone: in clear with prior knowledge, or over TLS. It refuses what a real one does.
func grpcServer(t testing.TB, secure bool, handle http.HandlerFunc) *httptest.Server {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" || !isGRPCType(r.Header) {
			http.Error(w, fmt.Sprintf("no gRPC: %s, %v", r.Proto, r.Header), http.StatusUnsupportedMediaType)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header()["Date"] = nil
		handle(w, r)
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(!secure)
	srv.Config.Protocols.SetHTTP2(secure)
	if secure {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv
}

// ended gives an answer its trailers.
func ended(w http.ResponseWriter, status, text string) {
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
	w.Header().Set(http.TrailerPrefix+"Grpc-Message", text)
}

// grpcCall is a request as gRPC clients send it.
func grpcCall(t testing.TB, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	req.Header.Set("User-Agent", "raw")
	return req
}

// result is what a client got of a call.
type result struct {
	said    string // the bytes of the answer
	head    string // grpc-status in the head
	trailer http.Header
	length  int64
	err     error
}

func call(c *http.Client, req *http.Request) result {
	res, err := c.Do(req)
	if err != nil {
		return result{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, b)
	}
	return result{said: string(b), head: res.Header.Get("Grpc-Status"), trailer: res.Trailer, length: res.ContentLength, err: err}
}

// grpcUpstream sends the calls for api.example.com to srv.
func grpcUpstream(srv *httptest.Server) func(*Config) {
	return func(cfg *Config) {
		cfg.Upstreams = map[string]string{"api.example.com": srv.URL}
		if srv.Certificate() != nil {
			cfg.RootCAs = srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		}
	}
}

// TestUnaryCall records and replays unary calls, through every pair of ways in which a program and an upstream speak HTTP/2.
func TestUnaryCall(t *testing.T) {
	for _, tt := range []struct {
		client, url string
		secure      bool
	}{
		{"h2c", "http://api.example.com", false},
		{"h2", "https://api.example.com", false},
		{"h2c", "http://api.example.com", true},
		{"h2", "https://api.example.com", true},
	} {
		t.Run(fmt.Sprintf("%s, %v", tt.client, tt.secure), func(t *testing.T) {
			g := newRig(t, grpcUpstream(grpcServer(t, tt.secure, func(w http.ResponseWriter, r *http.Request) {
				asked, _ := readMessage(r.Body)
				io.Copy(io.Discard, r.Body)
				w.Write(message("hello, " + asked))
				ended(w, "0", "")
			})))
			check := func(g *rig) {
				t.Helper()
				for _, name := range []string{"one", "two"} {
					got := call(g.client(tt.client), grpcCall(t, tt.url+"/greet.Greeter/Hello", bytes.NewReader(message(name))))
					if got.err != nil || got.said != string(message("hello, "+name)) || got.trailer.Get("Grpc-Status") != "0" {
						t.Errorf("%s: got %+v", name, got)
					}
				}
			}
			check(g)
			check(replayRig(g, nil))
		})
	}
}

// TestTrailersOnly replays an answer that is nothing but one head with the end of its stream, which clients tell from one that has
// no trailers behind it.
func TestTrailersOnly(t *testing.T) {
	g := newRig(t, grpcUpstream(grpcServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Grpc-Status", "5")
		w.Header()["Content-Length"] = nil
	})))
	check := func(g *rig) {
		t.Helper()
		got := call(g.client("h2c"), grpcCall(t, "http://api.example.com/greet.Greeter/Hello", bytes.NewReader(message("x"))))
		if got.err != nil || got.head != "5" || len(got.trailer) != 0 || got.length != 0 { // net/http has length 0 of what ends with its head
			t.Errorf("got %+v", got)
		}
	}
	check(g)
	check(replayRig(g, nil))
}

// TestTrailersInClearText passes on, records and replays those of HTTP/1.1, with their announcement.
func TestTrailersInClearText(t *testing.T) {
	for _, client := range []string{"h1", "h2"} {
		t.Run(client, func(t *testing.T) {
			g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				io.WriteString(w, "part")
				w.(http.Flusher).Flush()
				io.WriteString(w, "part")
				w.Header().Set("X-Sum", "abc")
			}))
			url := map[string]string{"h1": "http://api.example.com/", "h2": "https://api.example.com/"}[client]
			check := func(g *rig) {
				t.Helper()
				res, err := g.client(client).Get(url)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if _, told := res.Trailer["X-Sum"]; !told && client == "h1" {
					t.Error("the trailer was not announced")
				}
				b, err := io.ReadAll(res.Body)
				if err != nil || string(b) != "partpart" || res.Trailer.Get("X-Sum") != "abc" {
					t.Errorf("got %q, %v, %v", b, err, res.Trailer)
				}
			}
			check(g)
			check(replayRig(g, nil))
		})
	}
}

// TestTrailersOnTape keeps them without their secrets.
func TestTrailersOnTape(t *testing.T) {
	const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
	g := newRig(t, grpcUpstream(grpcServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(message("x"))
		ended(w, "16", secret)
	})))
	got := call(g.client("h2c"), grpcCall(t, "http://api.example.com/a/b", bytes.NewReader(message("x"))))
	if got.trailer.Get("Grpc-Message") != secret {
		t.Fatalf("the program got %+v", got)
	}
	g.srv.Close()
	for r, err := range g.tap.reader().Records() {
		if err != nil {
			t.Fatal(err)
		}
		kept := string(tape.FieldValue(*tape.Extras(r.Kind), "response_trailers"))
		if !bytes.Contains([]byte(kept), []byte(`["Grpc-Status","16"]`)) || bytes.Contains(g.tap.file.bytes(), []byte(secret)) {
			t.Errorf("kept %s", kept)
		}
	}
}
