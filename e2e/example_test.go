package e2e_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/e2e"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// newShop is a whole application: a page with a form, the order that it makes, refunds for other services.
func newShop(issuer *tokens.Issuer, store idem.TokenStore, ledger idem.Ledger) (http.Handler, error) {
	// README:begin
	guard, err := web.New(web.Config{Tokens: issuer, Store: store, Ledger: ledger})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Mount("/idem", guard.Routes())                                              // tokens, browser client, what a refusal means
	r.With(guard.Forms).Get("/orders/new", showForm)                              // pages that embed tokens
	r.With(guard.Token("order.create")).Post("/orders", createOrder)              // forms and single-page apps
	r.With(guard.Key("refund", web.JSONKey("refundNo"))).Post("/refunds", refund) // calls that name their operation
	// README:end
	return r, nil
}

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

func refund(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// A form that is submitted twice makes one order, and both submissions get the same answer.
func Example() {
	folder, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlitestore.Open(filepath.Join(folder, "shop.db"))
	check(err)
	defer db.Close()
	ctx := context.Background()
	check(sqlitestore.Migrate(ctx, db, sqlitestore.Options{}))
	_, err = db.ExecContext(ctx, `CREATE TABLE orders (item TEXT)`)
	check(err)
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	check(err)
	key, err := tokens.HS256("2026-01", []byte(rand.Text()+rand.Text()))
	check(err)
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}})
	check(err)

	shop, err := newShop(issuer, memstore.New(memstore.Options{}), ledger)
	check(err)
	server := httptest.NewServer(shop)
	defer server.Close()
	first, second := submitTwice(server.URL)
	var orders int
	check(db.QueryRowContext(ctx, `SELECT count(*) FROM orders`).Scan(&orders))
	fmt.Println(first, second, "orders:", orders)
	// Output: 201 201 orders: 1
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

func check(err error) {
	if err != nil {
		panic(err)
	}
}
