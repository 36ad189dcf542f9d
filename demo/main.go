// Command demo is a small shop in which submitting twice is harmless. With no setting it needs nothing but Go:
//
//	go run ./demo
//
// The settings are those of package server, by the environment.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/demo/shop"
	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/web"
)

func main() {
	if len(os.Args) > 1 {
		os.Exit(explain(os.Args[1:], os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	server.LogRedis(logger)
	server.WarnUnknown(ctx, os.Environ(), logger)
	if err := run(ctx, nil, logger); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// explain answers arguments, of which there are none: a setting that stands there would otherwise go unnoticed.
func explain(arguments []string, out, complaints io.Writer) (code int) {
	switch arguments[0] {
	case "-h", "-help", "--help":
	default:
		_, _ = fmt.Fprintf(complaints, "demo: %q is one word too many\n", arguments[0])
		out, code = complaints, 2
	}
	_, _ = io.WriteString(out, "usage: demo\n\nA shop in which submitting twice is harmless. Settings, by environment variable:\n\n"+server.Describe())
	return code
}

// run serves until the context ends. environ are the settings; nil: the process's own.
func run(ctx context.Context, environ map[string]string, logger *slog.Logger) (err error) {
	config, err := server.Load(environ)
	if err != nil {
		return err
	}
	backends, err := server.Open(ctx, config, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backends.Close()) }()
	storage, err := open(ctx, backends)
	if err != nil {
		return err
	}
	metrics := server.NewMetrics()
	settings := config.Web(backends, metrics, logger)
	settings.ErrorPage = shop.ErrorPage()
	points, err := shop.NewPoints(shop.PointsConfig{Storage: storage, Ledger: backends.Ledger, Broker: broker(config, backends, logger), Lease: config.Lease, Logger: logger})
	if err != nil {
		return err
	}
	settings.Abandoned = append(settings.Abandoned, points.Type())
	guard, err := web.New(settings)
	if err != nil {
		return err
	}
	pages, err := shop.New(shop.Config{Guard: guard, Storage: storage, Points: points, Logger: logger})
	if err != nil {
		return err
	}
	return beside(ctx, points.Run, func(ctx context.Context) error {
		return server.Serve(ctx, config, routes(config, backends, guard, metrics, pages, logger), guard, logger)
	})
}

// broker is Redis where there is one. Nil: a queue in this process.
func broker(c server.Config, b *server.Backends, logger *slog.Logger) shop.Broker {
	if b.Redis == nil {
		return nil
	}
	return shop.NewStream(b.Redis, b.Ledger, c.Lease, logger)
}

// beside serves while the work goes on, and ends it when the last request is answered: what that one left is begun, too. Work that ends by itself
// ends the serving.
func beside(ctx context.Context, work, serve func(context.Context) error) error {
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	worked := make(chan error, 1)
	go func() {
		worked <- work(working)
		stopServing()
	}()
	err := serve(serving)
	stopWorking()
	return errors.Join(err, <-worked)
}

// open makes the shop's tables in the ledger's database.
func open(ctx context.Context, b *server.Backends) (*shop.Storage, error) {
	if b.Postgres != nil {
		return shop.OnPostgres(ctx, b.Postgres)
	}
	return shop.OnSQLite(ctx, b.SQLite)
}

// routes keeps probes out of the request log.
func routes(c server.Config, b *server.Backends, guard *web.Guard, m *server.Metrics, pages http.Handler, logger *slog.Logger) http.Handler {
	r := chi.NewRouter()
	r.Group(b.Operations(guard, m))
	r.With(c.Middleware(logger)...).Mount("/", pages)
	return r
}
