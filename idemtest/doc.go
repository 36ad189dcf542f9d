// Package idemtest is for tests of handlers that stand behind a guard: a guard on the memory store, without Redis, Postgres or a browser.
//
//	g := idemtest.New(t)
//	h := g.Token("order.create")(http.HandlerFunc(createOrder))
//	r := g.Authorize(httptest.NewRequest("POST", "/orders", body), "order.create")
//	h.ServeHTTP(first, r)
//	h.ServeHTTP(second, idemtest.Again(r)) // the replay
//
// Everything works as behind real stores, same-transaction routes included - save that there is no database: pgstore.Tx and sqlitestore.Tx find no
// transaction in the handler's context. Handlers that need one are tested with sqlitestore on a file in t.TempDir.
package idemtest
