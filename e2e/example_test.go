package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/e2e"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// routes is the code of the README.
func routes(issuer *tokens.Issuer, store idem.TokenStore, ledger idem.Ledger) (http.Handler, error) {
	guard, err := web.New(web.Config{Tokens: issuer, Store: store, Ledger: ledger})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Mount("/idem", guard.Routes())                                              // tokens, browser client, what a refusal means
	r.With(guard.Forms).Get("/orders/new", showForm)                              // pages that embed tokens
	r.With(guard.Token("order.create")).Post("/orders", createOrder)              // forms and single-page apps
	r.With(guard.Key("refund", web.JSONKey("refundNo"))).Post("/refunds", refund) // calls that name their operation
	return r, nil
}

func showForm(w http.ResponseWriter, r *http.Request) { _ = e2e.OrderForm().Render(r.Context(), w) }

// createOrder writes in the ledger's transaction: the order and the record of it commit together.
func createOrder(w http.ResponseWriter, r *http.Request) {
	tx, err := sqlitestore.Tx(r.Context())
	if err == nil {
		_, err = tx.ExecContext(r.Context(), `INSERT INTO orders (item) VALUES (?)`, r.FormValue("item"))
	}
	if err != nil {
		http.Error(w, "not ordered", http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, "/orders/1", http.StatusSeeOther)
}

func refund(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// A form that is submitted twice makes one order, and both submissions land on its receipt.
func Example() {
	folder, _ := os.MkdirTemp("", "idem-example-*")
	defer func() { _ = os.RemoveAll(folder) }()
	db, err := sqlitestore.Open(filepath.Join(folder, "shop.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	ctx := context.Background()
	if err := sqlitestore.Migrate(ctx, db, sqlitestore.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	_, _ = db.ExecContext(ctx, `CREATE TABLE orders (item TEXT)`)
	ledger, _ := sqlitestore.New(db, sqlitestore.Options{})
	key, _ := tokens.HS256("first", []byte("0123456789abcdef0123456789abcdef"))
	issuer, _ := tokens.New(tokens.Config{Keys: []tokens.Key{key}})
	handler, err := routes(issuer, memstore.New(memstore.Options{}), ledger)
	if err != nil {
		fmt.Println(err)
		return
	}

	shop := httptest.NewServer(handler)
	defer shop.Close()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page, _ := browser.Get(shop.URL + "/orders/new")
	token := regexp.MustCompile(`name="idempotent_token" value="([^"]+)"`).FindStringSubmatch(text(page))[1]
	for range 2 {
		answer, _ := browser.PostForm(shop.URL+"/orders", url.Values{"idempotent_token": {token}, "item": {"tea"}})
		text(answer)
		fmt.Printf("%d %s replayed: %t\n", answer.StatusCode, answer.Header.Get("Location"), answer.Header.Get("Idempotent-Replayed") == "true")
	}
	orders := 0
	_ = db.QueryRowContext(ctx, `SELECT count(*) FROM orders`).Scan(&orders)
	fmt.Println("orders:", orders)
	// Output:
	// 303 /orders/1 replayed: false
	// 303 /orders/1 replayed: true
	// orders: 1
}

func text(answer *http.Response) string {
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	return string(body)
}
