package page

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Server serves the page over a library to who knows its token.
//
// Safety: it listens on loopback alone. A request must name the address that it listens on as its Host, so that no name that somebody
// points here reaches it; must not say that a page of elsewhere makes it (Origin, Sec-Fetch-Site); and must have the token, 256 random bits,
// as the first element of its path, which nobody logs and no Referer tells. GET alone is answered and changes nothing, but for decisions about what
// waits at a daemon, which a page of this very origin posts; no answer may be read by another origin.
type Server struct {
	shelf  *Stacks
	bundle Bundle
	token  string
	hosts  []string // that it is asked by
}

// Listen listens on an address of the loopback.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%s: want an address of the loopback and a port, as in 127.0.0.1:8090", addr)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is not of the loopback: nobody else is to see recordings; ssh -L makes a way from another machine", addr)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}

// NewServer returns a server for what listens at addr.
func NewServer(shelf *Stacks, bundle Bundle, addr net.Addr) (*Server, error) {
	if err := bundle.check(); err != nil {
		return nil, err
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, err
	}
	return &Server{
		shelf: shelf, bundle: bundle, token: base64.RawURLEncoding.EncodeToString(secret[:]), hosts: []string{addr.String(), "localhost:" + port},
	}, nil
}

// URL is where the page is, its token in it.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/" + s.token + "/" }

// Serve answers requests until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // what streams ends with it
	}
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", s.bundle.policy("connect-src 'self'; ")+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if code, why := s.refuse(r); code != 0 {
		http.Error(w, why, code)
		return
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case path == "":
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte(s.bundle.head("connect-src 'self'; ") + s.bundle.foot()))
	case r.Method == http.MethodPost:
		s.shelf.Daemon.decide(w, r)
	case strings.HasPrefix(path, "run/") && strings.HasSuffix(path, "/live"):
		s.shelf.live(w, r, strings.TrimSuffix(strings.TrimPrefix(path, "run/"), "/live"))
	default:
		s.document(w, r, path)
	}
}

// refuse says why a request is none of the page's; 0 where it is.
func (s *Server) refuse(r *http.Request) (code int, why string) {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	token, path, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Host != s.hosts[0] && r.Host != s.hosts[1]:
		return http.StatusMisdirectedRequest, "this is not the host that the page is at"
	case origin != "" && origin != "http://"+r.Host, site != "" && site != "same-origin" && site != "none" && !opensPage(r):
		return http.StatusForbidden, "another page asks for this"
	case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 || !slash:
		return http.StatusNotFound, "open the address that tapedeck ui printed, all of it"
	case r.Method == http.MethodPost && path == "daemon/decide" && origin != "" && s.shelf.Daemon != nil:
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, "GET alone"
	}
	return 0, ""
}

// opensPage reports whether a browser goes to the page itself, in a tab: a link may lead there for who has the token, as that of Browse does.
// What linked to it can neither frame it nor hold its window.
func opensPage(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && strings.Count(r.URL.Path, "/") == 2 &&
		strings.HasSuffix(r.URL.Path, "/")
}

// document answers with a document.
func (s *Server) document(w http.ResponseWriter, r *http.Request, path string) {
	var b []byte
	var err error
	switch {
	case path == "daemon.json" && s.shelf.Daemon != nil:
		b, err = documentOf(s.shelf.Daemon.view(r.Context()))
	case strings.HasPrefix(path, "daemon/run/") && s.shelf.Daemon != nil:
		b, err = documentOf(s.shelf.Daemon.trace(r.Context(), strings.TrimSuffix(strings.TrimPrefix(path, "daemon/run/"), ".json")))
	case path == "search.json":
		b, err = documentOf(s.shelf.search(r.Context(), r.URL.Query().Get("run"), r.URL.Query().Get("q")))
	case strings.HasSuffix(path, "/index.json") && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
		if b, err = s.shelf.index(path); err == nil {
			w.Header().Set("Content-Encoding", "gzip")
		}
	default:
		b, err = s.shelf.Document(r.Context(), path)
	}
	switch {
	case errors.Is(err, ErrNoDocument):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.Contains(path, "/payload/") {
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	w.Write(b)
}

// A Bundle is the built page (package ui): one script, which is no module, and one style sheet.
type Bundle struct{ Script, Style string }

// check refuses a bundle that would end its own element.
func (b *Bundle) check() error {
	for what, text := range map[string]string{"script": b.Script, "style": b.Style} {
		low := strings.ToLower(text)
		if strings.Contains(low, "</"+what) || strings.Contains(low, "<!--") {
			return fmt.Errorf("the page's %s holds what would end it: build it again", what)
		}
	}
	return nil
}

// policy is the Content-Security-Policy of the page: it may load what it holds, known by its digest, images that stand in its data, and what
// connect allows beside; nothing else, and no request can leave it.
func (b *Bundle) policy(connect string) string {
	digest := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + digest(b.Script) + "; style-src " + digest(b.Style) + "; img-src data:; " + connect +
		"base-uri 'none'; form-action 'none'"
}

// head is the page up to its data. Nothing of a recording stands in it, its title neither: the script gives it one.
func (b *Bundle) head(connect string) string {
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="` + b.policy(connect) + `">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Tapedeck</title>
<style>` + b.Style + `</style>
</head>
<body>
<noscript>This page shows recordings by a script that it holds itself. It asks nobody for anything.</noscript>
`
}

func (b *Bundle) foot() string { return "<script>" + b.Script + "</script>\n</body>\n</html>\n" }

// Browse has a program open the page in a browser. The program is given the name of a file that only this user reads and that leads to the
// page: anybody on the machine sees what programs are started with, and the address has the token. done takes the file away; it is to be
// called in any case. The program may be the browser itself: it goes on as long as it likes.
func (s *Server) Browse(program string) (done func(), err error) {
	dir, err := os.MkdirTemp("", "tapedeck-ui-") // 0700
	if err != nil {
		return func() {}, err
	}
	remove := func() { os.RemoveAll(dir) }
	path := filepath.Join(dir, "open.html")
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=` +
		html.EscapeString(s.URL()) + `"><title>Tapedeck</title>` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return remove, err
	}
	child := exec.Command(program, path)
	if err := child.Start(); err != nil {
		return remove, err
	}
	go child.Wait() // how it ends says nothing: many hand over to a browser that runs
	return remove, nil
}
