package main

import (
	"context"
	"errors"
	"flag"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/web"
)

// serve is the standalone server. It has no routes to guard: applications that are not written in Go ask it for tokens.
func (p program) serve(ctx context.Context, arguments []string) (err error) {
	_, err = p.flags("serve", "serve\n\nSettings, by environment variable:\n\n"+server.Describe(), arguments, 0, func(*flag.FlagSet) {})
	if err != nil {
		return err
	}
	config, err := server.Load(p.environ())
	if err != nil {
		return err
	}
	backends, err := server.Open(ctx, config, p.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backends.Close()) }()
	metrics := server.NewMetrics()
	guard, err := web.New(config.Web(backends, metrics, p.logger))
	if err != nil {
		return err
	}
	return server.Serve(ctx, config, p.routes(config, backends, metrics, guard), guard, p.logger)
}

// routes keeps probes out of the request log.
func (p program) routes(c server.Config, b *server.Backends, m *server.Metrics, guard *web.Guard) http.Handler {
	r := chi.NewRouter()
	r.Group(b.Operations(guard, m))
	for _, prefix := range []string{web.DefaultPrefix, "/api/idempotent"} {
		r.With(c.Middleware(p.logger)...).Mount(prefix, guard.Routes())
	}
	return r
}

// environ are the variables that are ours.
func (p program) environ() map[string]string {
	ours := map[string]string{}
	for _, v := range server.Variables() {
		ours[v.Name] = p.getenv(v.Name)
	}
	return ours
}

// errNoDatabase: whoever forgot the variable would otherwise see success, and a SQLite file that nobody asked for.
var errNoDatabase = errors.New("IDEM_DATABASE_URL is empty, and idem migrate needs it: sqlite:PATH, or postgres://user:password@host:port/database")

// migrate needs no other setting than the database.
func (p program) migrate(ctx context.Context, arguments []string) error {
	const variable = "IDEM_DATABASE_URL"
	if _, err := p.flags("migrate", "migrate\n\nIts setting, by environment variable:\n\n"+server.Describe(variable), arguments, 0, func(*flag.FlagSet) {}); err != nil {
		return err
	}
	url := server.Secret(p.getenv(variable))
	if url == "" {
		return errNoDatabase
	}
	if err := server.Migrate(ctx, url, p.logger); err != nil {
		return err
	}
	p.logger.InfoContext(ctx, "idem: the ledger's table is up to date")
	return nil
}
