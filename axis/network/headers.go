package network

import (
	"maps"
	"mime"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// reduceEncodings takes the codings that cannot be decoded here, which a secret inside a body makes necessary, out of
// Accept-Encoding, "*" too.
func reduceEncodings(h http.Header) {
	given, ok := h["Accept-Encoding"]
	if !ok {
		return
	}
	var kept []string
	for _, list := range given {
		for coding := range strings.SplitSeq(list, ",") {
			coding = textproto.TrimString(coding)
			name, _, _ := strings.Cut(coding, ";")
			if name = textproto.TrimString(name); name != "" && exchange.CanDecode(name) {
				kept = append(kept, coding)
			}
		}
	}
	if len(kept) == 0 {
		kept = []string{"identity"}
	}
	h["Accept-Encoding"] = []string{strings.Join(kept, ", ")}
}

// hasToken reports whether the comma-separated field name of h holds token, whatever its case.
func hasToken(h http.Header, name, token string) bool {
	for _, list := range h[name] {
		for item := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(textproto.TrimString(item), token) {
				return true
			}
		}
	}
	return false
}

// passTE puts "TE: trailers" into the header of a request that leaves, where the program sent it: it says that the program reads
// trailers, and a gRPC server refuses a call without it. What else a TE says concerns one connection.
func passTE(out, in http.Header) {
	if hasToken(in, "Te", "trailers") {
		out["Te"] = []string{"trailers"}
	}
}

// announce tells a program of HTTP/1.1 the names of the trailers, as the upstream did. In HTTP/2 they need no announcing, and
// gRPC does without.
func (x *relay) announce() {
	if x.a.trailer != nil && len(*x.a.trailer) > 0 && x.r.ProtoMajor == 1 {
		x.w.Header()["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(*x.a.trailer)), ", ")}
	}
	if _, told := x.a.header["Content-Length"]; x.a.trails && !told && x.r.ProtoMajor == 2 {
		x.w.Header()["Content-Length"] = nil // an answer that is nothing but its head says no length, and ends with it
	}
}

// trail records the trailers and gives them to the program: they leave with the end.
func (x *relay) trail() {
	if x.a.trailer == nil {
		return
	}
	x.o.Trailers(*x.a.trailer)
	for name, values := range *x.a.trailer {
		if len(values) > 0 {
			x.w.Header()[http.TrailerPrefix+name] = values
		}
	}
}

// isGRPC reports whether a request is a gRPC call: its answer may come while it is still being sent, and ends with trailers.
func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && r.Method == http.MethodPost && isGRPCType(r.Header)
}

// isGRPCType reports whether the Content-Type of a header is application/grpc, with or without what its messages are made of.
// gRPC-Web, which is made to do without HTTP/2 and trailers, is another.
func isGRPCType(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")
}

// wantsH2C reports whether an http upstream is spoken to in HTTP/2 with prior knowledge: for a gRPC call, which there is no other
// way for, and for what came so itself and reads trailers.
func wantsH2C(r *http.Request) bool {
	return isGRPC(r) || r.ProtoMajor == 2 && r.TLS == nil && hasToken(r.Header, "Te", "trailers")
}

// trailing reports whether trailers count for a request.
func trailing(r *http.Request) bool { return isGRPC(r) || hasToken(r.Header, "Te", "trailers") }
