package scene

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // what is compressed is read
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Bytes is a gRPC codec of messages that are bytes.
type Bytes struct{}

// Marshal implements encoding.Codec.
func (Bytes) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

// Unmarshal implements encoding.Codec.
func (Bytes) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}

// Name implements encoding.Codec.
func (Bytes) Name() string { return "bytes" }

// NewGRPC is a server with a unary method, one that takes a stream, and one that answers each message of a stream, "many" twenty times.
func NewGRPC() *grpc.Server {
	s := grpc.NewServer(grpc.ForceServerCodec(Bytes{}))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "scene.Scene", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: echo}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Chat", Handler: chat, ClientStreams: true, ServerStreams: true},
			{StreamName: "Count", Handler: count, ClientStreams: true},
		},
	}, nil)
	return s
}

func echo(_ any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var in []byte
	if err := dec(&in); err != nil {
		return nil, err
	}
	if string(in) == "refuse" {
		return nil, status.Error(codes.NotFound, "no such thing: ü")
	}
	out := append([]byte("echo "), in...)
	return &out, grpc.SetTrailer(ctx, metadata.Pairs("x-said", string(in)))
}

func chat(_ any, s grpc.ServerStream) error {
	for {
		var in []byte
		if err := s.RecvMsg(&in); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n := 1
		if string(in) == "many" {
			n = 20
		}
		for i := range n {
			out := fmt.Appendf(nil, "%d %s", i, in)
			if err := s.SendMsg(&out); err != nil {
				return err
			}
		}
	}
}

func count(_ any, s grpc.ServerStream) error {
	for n := 0; ; n++ {
		var in []byte
		err := s.RecvMsg(&in)
		if errors.Is(err, io.EOF) {
			out := fmt.Appendf(nil, "%d parts", n)
			return s.SendMsg(&out)
		}
		if err != nil {
			return err
		}
	}
}
