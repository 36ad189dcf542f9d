package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/e2e"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// application is what the guard protects, and the guard, which runs beside it.
type application struct {
	http.Handler
	guard *web.Guard
}

// newApplication has a page with a form, the order that it makes, refunds for other services.
func newApplication(issuer *tokens.Issuer, store idem.TokenStore, ledger idem.Ledger) (*application, error) {
	// README:begin
	guard, err := web.New(web.Config{Tokens: issuer, Store: store, Ledger: ledger})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Mount("/idem", guard.Routes())                                                               // tokens, browser client, what a refusal means
	r.With(guard.Forms).Get("/orders/new", showForm)                                               // pages that embed tokens
	r.With(guard.Token("order.create")).Post("/orders", createOrder)                               // forms and single-page apps
	r.With(guard.Key("refund", web.JSONKey("refundNo"), web.Anonymous())).Post("/refunds", refund) // calls that name their operation, from anybody
	// README:end
	return &application{Handler: r, guard: guard}, nil
}

// README:begin

// open is what web.Config needs. Postgres: pgxpool.New, pgstore.Migrate, pgstore.New. Redis: redisstore.New(client, redisstore.Options{}).
func open(ctx context.Context, db *sql.DB) (*tokens.Issuer, idem.TokenStore, idem.Ledger, error) { // db of sqlitestore.Open("shop.db")
	if err := sqlitestore.Migrate(ctx, db, sqlitestore.Options{}); err != nil {
		return nil, nil, nil, err
	}
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	keys, err := tokens.ParseKeys(os.Getenv("IDEM_KEYS"))
	if err != nil {
		return nil, nil, nil, err
	}
	issuer, err := tokens.New(tokens.Config{Keys: keys})
	return issuer, memstore.New(memstore.Options{Forgetful: true}), ledger, err
}

func serve(ctx context.Context, server *http.Server, listener net.Listener, guard *web.Guard) error {
	go guard.Run(ctx) // cleans the ledger
	go server.Serve(listener)
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(server.Shutdown(stopping), guard.Drain(stopping)) // first the requests, then what finishes behind their answers
}

// README:end

func showForm(w http.ResponseWriter, r *http.Request) {
	check(e2e.OrderForm().Render(r.Context(), w))
}

// createOrder writes in the transaction that the guard commits together with the record that it was done.
func createOrder(w http.ResponseWriter, r *http.Request) {
	tx, err := sqlitestore.Tx(r.Context())
	check(err)
	_, err = tx.ExecContext(r.Context(), `INSERT INTO orders VALUES ($1)`, r.FormValue("item"))
	check(err)
	w.WriteHeader(http.StatusCreated)
}

func refund(w http.ResponseWriter, r *http.Request) {
	tx, err := sqlitestore.Tx(r.Context())
	check(err)
	_, err = tx.ExecContext(r.Context(), `INSERT INTO refunds VALUES (datetime())`)
	check(err)
	w.WriteHeader(http.StatusNoContent)
}

// A form that is submitted twice makes one order, and both submissions get the same answer; so does a call that is repeated.
func Example() {
	folder, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlitestore.Open(filepath.Join(folder, "shop.db"))
	check(err)
	defer db.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	_, err = db.ExecContext(ctx, `CREATE TABLE orders (item TEXT); CREATE TABLE refunds (at TEXT)`)
	check(err)
	key, err := tokens.GenerateHS256("2026-01") // what idem keys prints
	check(err)
	check(os.Setenv("IDEM_KEYS", key))
	defer os.Unsetenv("IDEM_KEYS")

	issuer, store, ledger, err := open(ctx, db)
	check(err)
	shop, err := newApplication(issuer, store, ledger)
	check(err)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	served := make(chan error)
	go func() {
		served <- serve(ctx, &http.Server{Handler: shop, ReadHeaderTimeout: time.Second}, listener, shop.guard)
	}()
	url := "http://" + listener.Addr().String()

	first, second := submitTwice(url)
	fmt.Println(first, second, "orders:", count(ctx, db, "orders"))
	first, second = refundTwice(url)
	fmt.Println(first, second, "refunds:", count(ctx, db, "refunds"))
	stop()
	fmt.Println("stopped:", <-served)
	// Output:
	// 201 201 orders: 1
	// 204 204 refunds: 1
	// stopped: <nil>
}

func count(ctx context.Context, db *sql.DB, table string) (n int) {
	check(db.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(&n))
	return n
}

// submitTwice is somebody who clicks again when it is done, or whose browser does.
func submitTwice(shop string) (first, second int) {
	jar, err := cookiejar.New(nil)
	check(err)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	page, err := browser.Get(shop + "/orders/new")
	check(err)
	defer page.Body.Close()
	html, err := io.ReadAll(page.Body)
	check(err)
	_, field, _ := strings.Cut(string(html), `name="idempotent_token" value="`)
	token, _, _ := strings.Cut(field, `"`)
	submit := func() int {
		answer, err := browser.PostForm(shop+"/orders", url.Values{"idempotent_token": {token}, "item": {"book"}})
		check(err)
		defer answer.Body.Close()
		return answer.StatusCode
	}
	return submit(), submit()
}

// refundTwice is a service that did not get its answer, and asks again. It has no cookies.
func refundTwice(shop string) (first, second int) {
	call := func() int {
		answer, err := http.Post(shop+"/refunds", "application/json", strings.NewReader(`{"refundNo":"R-1"}`))
		check(err)
		defer answer.Body.Close()
		return answer.StatusCode
	}
	defer http.DefaultClient.CloseIdleConnections()
	return call(), call()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
