package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 10 * time.Minute // 10 MiB at 17 KiB a second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10

	// stopMargin is for what comes after the work: recording and sending the answer.
	stopMargin = 5 * time.Second
)

// Serve listens and serves until ctx ends, and then stops gracefully: no new connection is taken, claimed work and waiting duplicates are let finish, what
// finishes behind the answers is written. It returns nil then, and an error where it cannot listen, or where something still runs when a route's limit of
// 30 s (idem.DefaultLimit), the waiting time and five seconds have passed: those connections are cut. It runs guard.Run meanwhile, and no goroutine of its own outlives it.
//
// There is no time-out for answers, and for requests a long one: a duplicate waits, and a large body is slow; routes have limits of their own.
func Serve(ctx context.Context, c Config, handler http.Handler, guard *web.Guard, logger *slog.Logger) error {
	select {
	case <-ctx.Done():
		return nil // told to stop before it began
	default:
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("IDEM_ADDR: cannot listen: %w; end what listens there, or choose another address", err)
	case err != nil:
		return fmt.Errorf("IDEM_ADDR: cannot listen: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		// It runs on while the handler works, and its end looks like a client that left.
		ReadTimeout: bodyTimeout + c.Wait + idem.DefaultLimit,
		ErrorLog:    slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	logger.InfoContext(ctx, "idem: serving", "url", c.url(listener.Addr()), "address", listener.Addr().String())

	running, stopRunning := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { _ = guard.Run(running) }) // returns the context's error, whenever it ends
	served := make(chan error, 1)
	background.Go(func() { served <- server.Serve(listener) })

	select {
	case err = <-served: // without having been told to
		err = fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		logger.InfoContext(ctx, "idem: stopping")
		err = stop(ctx, server, idem.DefaultLimit+c.Wait+stopMargin)
	}
	stopRunning()
	background.Wait()
	return errors.Join(err, drain(ctx, guard))
}

// url is what a person opens.
func (c Config) url(addr net.Addr) string {
	if origin := c.origin(); origin != "" {
		return origin
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// stop waits for requests under way. ctx is the one that has ended.
func stop(ctx context.Context, server *http.Server, within time.Duration) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		return errors.Join(fmt.Errorf("stopping: requests were cut: %w", err), server.Close())
	}
	return nil
}

func drain(ctx context.Context, guard *web.Guard) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMargin)
	defer cancel()
	if err := guard.Drain(bounded); err != nil {
		return fmt.Errorf("stopping: the entrance store was not told everything: %w", err)
	}
	return nil
}
