// Command grpc makes calls of every sort with google.golang.org/grpc to the server whose address is its first
// argument, and prints what it gets. What follows stands in the messages of the call that is answered while it still comes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(target string) error {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(scene.Bytes{})))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv("GRPC_TOKEN"))
	return errors.Join(unary(ctx, conn), refused(ctx, conn), download(ctx, conn), upload(ctx, conn), chat(ctx, conn))
}

func unary(ctx context.Context, conn *grpc.ClientConn) error {
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		var trailer metadata.MD
		in, out := []byte("unary"), []byte(nil)
		if err := conn.Invoke(ctx, "/scene.Scene/Echo", &in, &out, append(opts, grpc.Trailer(&trailer))...); err != nil {
			return err
		}
		fmt.Printf("%s %v\n", out, trailer.Get("x-said"))
	}
	return nil
}

func refused(ctx context.Context, conn *grpc.ClientConn) error {
	in, out := []byte("refuse"), []byte(nil)
	err := conn.Invoke(ctx, "/scene.Scene/Echo", &in, &out)
	fmt.Println(status.Code(err), status.Convert(err).Message())
	return nil
}

func download(ctx context.Context, conn *grpc.ClientConn) error {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/scene.Scene/Chat")
	if err != nil {
		return err
	}
	in := []byte("many")
	if err := errors.Join(s.SendMsg(&in), s.CloseSend()); err != nil {
		return err
	}
	return drain(s)
}

func upload(ctx context.Context, conn *grpc.ClientConn) error {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/scene.Scene/Count")
	if err != nil {
		return err
	}
	for i := range 50 {
		in := fmt.Appendf(nil, "part %d", i)
		if err := s.SendMsg(&in); err != nil {
			return err
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	return drain(s)
}

// chat sends each message once the one before was answered.
func chat(ctx context.Context, conn *grpc.ClientConn) error {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/scene.Scene/Chat")
	if err != nil {
		return err
	}
	for i := range 100 {
		in, out := fmt.Appendf(nil, "turn %d%s", i, strings.Join(os.Args[2:], " ")), []byte(nil)
		if err := s.SendMsg(&in); err != nil {
			return err
		}
		if err := s.RecvMsg(&out); err != nil {
			return err
		}
		fmt.Printf("%s\n", out)
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	return drain(s)
}

func drain(s grpc.ClientStream) error {
	for {
		var out []byte
		err := s.RecvMsg(&out)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", out)
	}
}
