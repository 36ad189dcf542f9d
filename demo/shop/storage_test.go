package shop_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/idemkit/idem/demo/shop"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/web"
)

// Several processes start at once, and again on what is there: nothing is made twice, nothing is lost.
func TestTablesAreMadeOnce(t *testing.T) {
	t.Parallel()
	for name, opener := range map[string]func(t *testing.T) func(context.Context) error{
		"sqlite": func(t *testing.T) func(context.Context) error {
			db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "shop.db"))
			must(t, err)
			t.Cleanup(func() { _ = db.Close() })
			return func(ctx context.Context) error { _, err := shop.OnSQLite(ctx, db); return err }
		},
		"postgres": func(t *testing.T) func(context.Context) error {
			pool := testkit.Postgres(t).Pool(t)
			return func(ctx context.Context) error { _, err := shop.OnPostgres(ctx, pool); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := opener(t)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if err := open(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			must(t, open(t.Context()))
		})
	}
}

// What stands in the database outlives the process, and its replays too.
func TestShopIsOpenedAgain(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted, token := item(), s.token()
		first := s.order(token, "", one(wanted))
		s.want(s.transfer("k", "", `{"from":"alice","to":"carol","amount":250}`), 201)
		again := open(s.T, s.parts)
		again.client.Jar = s.client.Jar // cookies do not tell ports apart
		again.parts.forget()
		again.wantReplay(again.order(token, "", one(wanted)), first)
		again.wantOrders(wanted, 1)
		again.wantBalances(map[string]int{"alice": 750, "bob": 1000, "carol": 1250})
	})
}

func TestStorageAway(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "shop.db"))
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := shop.OnSQLite(ended, db); err == nil {
		t.Error("tables were made under a context that had ended")
	}
	if _, err := shop.OnPostgres(ended, testkit.Postgres(t).Pool(t)); err == nil {
		t.Error("tables were made under a context that had ended")
	}
}

// A shop whose database has gone says so, in the form that each path is for, and shows nothing of the cause.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "shop.db"))
	must(t, err)
	must(t, sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}))
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	must(t, err)
	storage, err := shop.OnSQLite(t.Context(), db)
	must(t, err)
	p := onSQLite(t)
	p.ledger, p.storage = ledger, storage
	s := open(t, p)
	must(t, db.Close())
	for path, contentType := range map[string]string{
		"/api/accounts": "application/problem+json", "/api/orders?item=cup": "application/problem+json", "/orders/o-1": "text/html; charset=utf-8",
	} {
		a := s.get(path)
		s.want(a, 503)
		if got := a.Header.Get("Content-Type"); got != contentType || a.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: Content-Type %q, Retry-After %q", path, got, a.Header.Get("Retry-After"))
		}
	}
	s.want(s.post("/api/unguarded/orders", one("cup")), 503)
	s.want(s.order(s.token(), "", one("cup")), 503)
	s.want(s.get("/form"), 200) // tokens are signed, and need no ledger
}

func TestShopNeedsItsParts(t *testing.T) {
	t.Parallel()
	p := onSQLite(t)
	guard, err := web.New(web.Config{Ledger: p.ledger, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	for name, config := range map[string]shop.Config{"guard": {Storage: p.storage}, "storage": {Guard: guard}} {
		if _, err := shop.New(config); err == nil {
			t.Errorf("a shop without its %s", name)
		}
	}
}
