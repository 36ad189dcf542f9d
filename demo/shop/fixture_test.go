package shop_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/demo/shop"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/redisstore"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parts are where a shop keeps everything.
type parts struct {
	store   idem.TokenStore
	ledger  idem.Ledger
	storage *shop.Storage
	forget  func()                     // makes the entrance store forget everything
	open    func(t *testing.T) *sql.DB // the database, to be looked at from outside
}

// backends are the two ways to run the shop; every behaviour is tested on both.
func backends() map[string]func(t *testing.T) parts {
	return map[string]func(t *testing.T) parts{"sqlite": onSQLite, "postgres and redis": onPostgres}
}

func onSQLite(t *testing.T) parts {
	t.Helper()
	p, _ := onFile(t)
	return p
}

// onFile is onSQLite with the handle of its database.
func onFile(t *testing.T) (parts, *sql.DB) {
	t.Helper()
	db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "shop.db"))
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}))
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	must(t, err)
	storage, err := shop.OnSQLite(t.Context(), db)
	must(t, err)
	store := memstore.New(memstore.Options{Forgetful: true})
	return parts{store: store, ledger: ledger, storage: storage, forget: store.Forget, open: func(*testing.T) *sql.DB { return db }}, db
}

func onPostgres(t *testing.T) parts {
	t.Helper()
	db := testkit.Postgres(t)
	script, err := pgstore.SQL(pgstore.Options{})
	must(t, err)
	db.Exec(t, script)
	pool := db.Pool(t)
	ledger, err := pgstore.New(pool, pgstore.Options{})
	must(t, err)
	t.Cleanup(ledger.Close)
	storage, err := shop.OnPostgres(t.Context(), pool)
	must(t, err)
	redis := testkit.Redis(t)
	return parts{
		store: redisstore.New(redis.Client(t), redisstore.Options{}), ledger: ledger, storage: storage, forget: func() { redis.FlushAll(t) },
		open: func(t *testing.T) *sql.DB {
			t.Helper()
			looked := stdlib.OpenDBFromPool(pool)
			t.Cleanup(func() { _ = looked.Close() })
			return looked
		},
	}
}

// site is a running shop and one browser that visits it.
type site struct {
	*testing.T
	url    string
	client *http.Client
	exits  chan int
	parts  parts
	close  func() // at the latest with the test
}

// open serves a shop on these parts, as main does. The fault "exit" leaves the claim as a process that died would: nobody releases it.
func open(t *testing.T, p parts) *site {
	t.Helper()
	return openWith(t, p, nil)
}

// openWith is open with another broker for the orders' events.
func openWith(t *testing.T, p parts, broker shop.Broker) *site {
	t.Helper()
	secret := bytes.Repeat([]byte("k"), tokens.MinSecret)
	key, err := tokens.HS256("test", secret)
	must(t, err)
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}})
	must(t, err)
	quiet := slog.New(slog.DiscardHandler)
	guard, err := web.New(web.Config{
		Tokens: issuer, Store: p.store, Ledger: p.ledger, ErrorPage: shop.ErrorPage(), Logger: quiet, Lease: time.Second,
	})
	must(t, err)
	points, err := shop.NewPoints(shop.PointsConfig{Storage: p.storage, Ledger: p.ledger, Broker: broker, Lease: time.Second, Logger: quiet})
	must(t, err)
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- points.Run(running) }()
	exits := make(chan int, 1)
	handler, err := shop.New(shop.Config{Guard: guard, Storage: p.storage, Points: points, Logger: quiet, Exit: func(code int) {
		exits <- code
		panic(http.ErrAbortHandler)
	}})
	must(t, err)
	served := httptest.NewServer(server.Recover(quiet)(handler))
	s := &site{T: t, url: served.URL, exits: exits, parts: p}
	s.client = newBrowser(t)
	s.close = sync.OnceFunc(func() {
		served.Close()
		must(t, guard.Drain(context.WithoutCancel(t.Context())))
		stop()
		must(t, <-ended)
	})
	t.Cleanup(s.close)
	return s
}

// newBrowser keeps cookies and follows no redirect: where one leads is what a test looks at.
func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// in is the same shop, visited by a browser of its own, for a subtest.
func (s *site) in(t *testing.T) *site {
	t.Helper()
	return &site{T: t, url: s.url, client: newBrowser(t), exits: s.exits, parts: s.parts}
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body string
}

func (s *site) do(r *http.Request) answer {
	s.Helper()
	a, err := s.try(r)
	must(s.T, err)
	return a
}

// try is for goroutines, which must not end the test.
func (s *site) try(r *http.Request) (answer, error) {
	response, err := s.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response, string(body)}, err
}

func (s *site) request(method, path, body string, header ...string) *http.Request {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	must(s.T, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func (s *site) get(path string) answer {
	s.Helper()
	return s.do(s.request(http.MethodGet, path, ""))
}

// post sends JSON.
func (s *site) post(path, body string, header ...string) answer {
	s.Helper()
	return s.do(s.request(http.MethodPost, path, body, append(header, "Content-Type", "application/json")...))
}

// token asks for a token for one order, and with it names the browser.
func (s *site) token() string {
	s.Helper()
	a := s.post("/api/idempotent/token", `{"action":"order.create"}`)
	s.want(a, http.StatusCreated)
	return member[string](s, a, "token")
}

func (s *site) order(token, query, body string) answer {
	s.Helper()
	return s.post("/api/orders"+query, body, "Idempotent-Token", token)
}

// ordered counts what was really created.
func (s *site) ordered(item string) int {
	s.Helper()
	return int(member[float64](s, s.get("/api/orders?item="+url.QueryEscape(item)), "count"))
}

func (s *site) wantOrders(item string, n int) {
	s.Helper()
	if got := s.ordered(item); got != n {
		s.Errorf("%d orders of %q, want %d", got, item, n)
	}
}

func (s *site) want(a answer, status int) {
	s.Helper()
	if a.StatusCode != status {
		s.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.body)
	}
}

// wantReplay compares an answer with the first one.
func (s *site) wantReplay(a, first answer) {
	s.Helper()
	s.want(a, first.StatusCode)
	if a.body != first.body || a.Header.Get("Location") != first.Header.Get("Location") {
		s.Errorf("replayed %q to %q, the first was %q to %q", a.body, a.Header.Get("Location"), first.body, first.Header.Get("Location"))
	}
	if a.Header.Get("Idempotent-Replayed") != "true" {
		s.Error("the replay is not marked")
	}
}

// member reads one member of a JSON answer.
func member[T any](s *site, a answer, name string) T {
	s.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(a.body), &object); err != nil {
		s.Fatalf("%v: %s", err, a.body)
	}
	value, ok := object[name].(T)
	if !ok {
		s.Fatalf("member %s is %T: %s", name, object[name], a.body)
	}
	return value
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eachBackend runs a test on every backend, beside all others.
func eachBackend(t *testing.T, test func(s *site)) {
	t.Helper()
	for name, parts := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(open(t, parts(t)))
		})
	}
}

// item is one that no other test orders.
func item() string { return "teapot " + idem.NewOwner()[:8] }

// body of an order of one piece.
func one(item string) string { return `{"item":"` + item + `","quantity":1}` }
