package server_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/redisstore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// What a guarded call costs its caller. Redis is held after the round trips that the answer may wait for: one that waited for more would not come.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		ledger                 bool
		options                []web.Option
		work                   func(context.Context, *testing.T)
		redis, redisInAll      int64 // the first call: before its answer, and with what follows it
		postgres, transactions int64 // the first call: round trips, and transactions that wrote
	}{
		"with a ledger": {
			ledger: true, work: elsewhere, redis: 1, redisInAll: 2, postgres: 2, transactions: 2,
		},
		"with a ledger, work in its transaction: begin and one statement are the work's": {
			ledger: true, work: inTransaction, redis: 1, redisInAll: 2, postgres: 4, transactions: 2,
		},
		"same transaction: as many as begin, the statement and commit have alone": {
			ledger: true, options: []web.Option{web.SameTx()}, work: inTransaction, redis: 1, redisInAll: 2, postgres: 3, transactions: 1,
		},
		"without a ledger": {
			work: elsewhere, redis: 2, redisInAll: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBooth(t, row.ledger, row.options, func(ctx context.Context) { row.work(ctx, t) })
			b.submit(b.token(), http.StatusCreated) // scripts are loaded, statements prepared
			b.settle()

			token := b.token()
			first := b.cost(row.redis, func() { b.submit(token, http.StatusCreated) })
			if want := (cost{row.redisInAll, row.postgres, row.transactions}); first != want {
				t.Errorf("the first call cost %+v, want %+v", first, want)
			}
			replay := b.cost(1, func() {
				if b.submit(token, http.StatusCreated).Header().Get("Idempotent-Replayed") != "true" {
					t.Error("not replayed")
				}
			})
			if want := (cost{redis: 1}); replay != want {
				t.Errorf("the replay cost %+v, want %+v", replay, want)
			}
			for what, forged := range b.forgeries() {
				if got := b.cost(0, func() { b.submit(forged, http.StatusForbidden) }); got != (cost{}) {
					t.Errorf("%s cost %+v", what, got)
				}
			}
		})
	}
}

func elsewhere(context.Context, *testing.T) {}

func inTransaction(ctx context.Context, t *testing.T) {
	t.Helper()
	tx, err := pgstore.Tx(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := tx.Exec(ctx, `INSERT INTO business VALUES (1)`); err != nil {
		t.Error(err)
	}
}

// cost is what one call made the back ends do.
type cost struct{ redis, postgres, transactions int64 }

// booth is a guarded route on real stores with meters before them.
type booth struct {
	*testing.T
	guard    *web.Guard
	orders   http.Handler
	redis    *turnstile
	postgres *pgMeter
	count    *pgxpool.Pool // a way to the server past the meter; nil without a ledger
}

func newBooth(t *testing.T, withLedger bool, options []web.Option, work func(context.Context)) *booth {
	t.Helper()
	b := &booth{T: t, redis: newTurnstile(), postgres: &pgMeter{}}
	rdb := testkit.Redis(t).Client(t)
	rdb.AddHook(b.redis)
	config := web.Config{
		Tokens: issuer(t, "0123456789abcdef0123456789abcdef"), Store: redisstore.New(rdb, redisstore.Options{}),
		Subject: func(*http.Request) string { return "anna" }, Logger: slog.New(slog.DiscardHandler),
	}
	if withLedger {
		config.Ledger = b.ledger()
	}
	guard, err := web.New(config)
	if err != nil {
		t.Fatal(err)
	}
	b.guard = guard
	b.orders = guard.Token("order.create", options...)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		work(r.Context())
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(b.settle)
	return b
}

// ledger is on a server of its own, whose transactions are counted by the numbers that it gave out.
func (b *booth) ledger() idem.Ledger {
	b.Helper()
	db := testkit.PostgresServer(b, "autovacuum=off").Database(b)
	text, err := pgstore.SQL(pgstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	db.Exec(b, text)
	db.Exec(b, `CREATE TABLE business (id integer)`)
	b.count = db.Pool(b)
	store, err := pgstore.New(db.Pool(b, b.postgres.configure), pgstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return store
}

func issuer(t *testing.T, secret string) *tokens.Issuer {
	t.Helper()
	key, err := tokens.HS256("k1", []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}})
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

func (b *booth) token() string {
	b.Helper()
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/idem/token", strings.NewReader(`{"action":"order.create"}`))
	b.guard.Routes().ServeHTTP(rec, r)
	var issued struct{ Token string }
	if err := json.Unmarshal(rec.Body.Bytes(), &issued); err != nil || issued.Token == "" {
		b.Fatalf("the token service answers %d %s, %v", rec.Code, rec.Body, err)
	}
	return issued.Token
}

// forgeries were signed by somebody else, or say something else than what was signed.
func (b *booth) forgeries() map[string]string {
	b.Helper()
	subject := tokens.SubjectDigest("", "anna")
	all, err := issuer(b.T, "another secret, also of 32 bytes").IssueAll([]tokens.Grant{{Action: "order.create", Subject: subject}})
	if err != nil {
		b.Fatal(err)
	}
	mine, other := strings.Split(b.token(), "."), strings.Split(b.token(), ".")
	return map[string]string{
		"another's key":              all[0].Token,
		"another token's signature":  mine[0] + "." + mine[1] + "." + other[2],
		"no signature":               mine[0] + "." + mine[1] + ".",
		"something that is no token": "token",
	}
}

func (b *booth) submit(token string, status int) *httptest.ResponseRecorder {
	b.Helper()
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"tea"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotent-Token", token)
	rec := httptest.NewRecorder()
	b.orders.ServeHTTP(rec, r)
	if rec.Code != status {
		b.Fatalf("answered %d %s, want %d", rec.Code, rec.Body, status)
	}
	return rec
}

// cost is that of a call whose answer may wait for so many round trips to Redis, and of what follows the answer.
func (b *booth) cost(blocking int64, call func()) cost {
	b.Helper()
	before, trips := b.transactions(), b.postgres.trips.Load()
	b.redis.admit(blocking)
	call()
	b.redis.open()
	b.settle()
	redis, refused := b.redis.since()
	if refused > 0 {
		b.Errorf("the answer waited for more than %d round trips to Redis", blocking)
	}
	return cost{redis, b.postgres.trips.Load() - trips, b.transactions() - before}
}

func (b *booth) transactions() int64 {
	b.Helper()
	if b.count == nil {
		return 0
	}
	var next int64
	if err := b.count.QueryRow(context.Background(), `SELECT txid_snapshot_xmax(txid_current_snapshot())`).Scan(&next); err != nil {
		b.Fatal(err)
	}
	return next
}

// settle waits for what is written behind the answers.
func (b *booth) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.guard.Drain(ctx); err != nil {
		b.Error(err)
	}
}
