package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// newQuickstartEndpointCommand is the endpoint that quickstart records its agent against, for whoever wants to go on from there.
func newQuickstartEndpointCommand(std streams) *cobra.Command {
	var listen string
	cmd := withHelp("quickstart endpoint", &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runQuickstartEndpoint(cmd.Context(), listen, std) },
	})
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "TCP `address`, port 0 for a free one")
	return cmd
}

func runQuickstartEndpoint(ctx context.Context, listen string, std streams) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: scriptedllm.New(nil), ReadHeaderTimeout: 10 * time.Second}
	closed := context.AfterFunc(ctx, func() { server.Close() })
	defer closed()
	visible.Fprintf(std.err, "tapedeck: a scripted model at http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
