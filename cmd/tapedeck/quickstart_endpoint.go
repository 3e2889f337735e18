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
	cmd := &cobra.Command{
		Use:   "endpoint",
		Short: "The scripted endpoint that quickstart records against",
		Long: `Answers as api.anthropic.com would, from a script: it needs no key and no network, and takes any key. Other agents can be
recorded against it too, for it speaks the protocols of the other providers, over their WebSockets as well. It knows a few wishes,
such as "write hello.txt", and "write hello.txt by mcp_files_write_file" where it is to call that tool. It says its address on stderr
and goes on until it is interrupted.

Exit status: 0 interrupted or terminated, 1 it could not listen.`,
		Example: `  tapedeck quickstart endpoint &
  ANTHROPIC_API_KEY=sk-ant-quickstart-not-a-key tapedeck record --upstream api.anthropic.com=http://127.0.0.1:8080 -- tapedeck quickstart agent "write hello.txt"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runQuickstartEndpoint(cmd.Context(), listen, std) },
	}
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
