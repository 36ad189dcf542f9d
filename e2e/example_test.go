package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// A whole application: a page with a form, the order that it makes, an API for refunds. Submitted twice, the order is made once, and both
// submissions get the same answer.
func Example() {
	folder, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlitestore.Open(filepath.Join(folder, "shop.db"))
	check(err)
	defer db.Close()
	check(sqlitestore.Migrate(context.Background(), db, sqlitestore.Options{}))
	_, err = db.ExecContext(context.Background(), `CREATE TABLE orders (item TEXT)`)
	check(err)
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	check(err)
	key, err := tokens.HS256("2026-01", []byte(rand.Text()+rand.Text()))
	check(err)
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}})
	check(err)

	order := func(w http.ResponseWriter, r *http.Request) {
		tx, err := sqlitestore.Tx(r.Context()) // committed together with the record that it was done
		check(err)
		_, err = tx.ExecContext(r.Context(), `INSERT INTO orders VALUES ($1)`, r.FormValue("item"))
		check(err)
		w.WriteHeader(http.StatusCreated)
	}
	cart, refund, refundNo, store := http.NotFound, http.NotFound, web.JSONKey("refundNo"), memstore.New(memstore.Options{})

	// README:begin
	guard, err := web.New(web.Config{Tokens: issuer, Store: store, Ledger: ledger})
	if err != nil {
		panic(err)
	}
	r := chi.NewRouter()
	r.Mount("/idem", guard.Routes())                               // gives out tokens, serves the browser client
	r.With(guard.Forms).Get("/cart", cart)                         // its forms carry a token
	r.With(guard.Token("order.create")).Post("/orders", order)     // once for each token; duplicates get the first answer
	r.With(guard.Key("refund", refundNo)).Post("/refunds", refund) // once for each refund number, whoever sends it
	// README:end

	server := httptest.NewServer(r)
	defer server.Close()
	token, cookie := tokenFor(server.URL, "order.create")
	first := submit(server.URL, token, cookie)
	second := submit(server.URL, token, cookie)
	var orders int
	check(db.QueryRowContext(context.Background(), `SELECT count(*) FROM orders`).Scan(&orders))
	fmt.Println(first, second, "orders:", orders)
	check(guard.Drain(context.Background()))
	// Output: 201 201 orders: 1
}

// tokenFor is what the browser client does before it submits.
func tokenFor(url, action string) (string, *http.Cookie) {
	response, err := http.Post(url+"/idem/token", "application/json", strings.NewReader(`{"action":"`+action+`"}`))
	check(err)
	defer response.Body.Close()
	var answer struct{ Token string }
	check(json.NewDecoder(response.Body).Decode(&answer))
	return answer.Token, response.Cookies()[0]
}

func submit(url, token string, cookie *http.Cookie) int {
	r, err := http.NewRequest(http.MethodPost, url+"/orders", strings.NewReader("item=book"))
	check(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotent-Token", token)
	r.AddCookie(cookie)
	response, err := http.DefaultClient.Do(r)
	check(err)
	defer response.Body.Close()
	return response.StatusCode
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
