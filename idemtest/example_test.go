package idemtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem/idemtest"
)

// shop is the application under test.
type shop struct{ orders []string }

func (s *shop) createOrder(w http.ResponseWriter, r *http.Request) {
	s.orders = append(s.orders, r.FormValue("item"))
	w.Header().Set("Location", fmt.Sprintf("/orders/%d", len(s.orders)))
	w.WriteHeader(http.StatusCreated)
}

func Example() {
	t := new(testing.T) // in a test, the test's own

	g := idemtest.New(t)
	s := &shop{}
	handler := g.Token("order.create")(http.HandlerFunc(s.createOrder))

	order := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("item=tea"))
	order.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	order = g.Authorize(order, "order.create")

	first, second := httptest.NewRecorder(), httptest.NewRecorder()
	handler.ServeHTTP(first, order)
	handler.ServeHTTP(second, idemtest.Again(order)) // a double click

	fmt.Println(first.Code, first.Header().Get("Location"))
	fmt.Println(second.Code, second.Header().Get("Location"), second.Header().Get("Idempotent-Replayed"))
	fmt.Println(s.orders)
	// Output:
	// 201 /orders/1
	// 201 /orders/1 true
	// [tea]
}
