package network

import (
	"mime"
	"net/http"
	"net/textproto"
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

// trailing reports whether trailers count for a request.
func trailing(r *http.Request) bool {
	return isGRPC(r) || exchange.HasToken(r.Header, "Te", "trailers")
}
