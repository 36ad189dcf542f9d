package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
)

// readyWithin bounds readyz: whoever asks gives up sooner or later.
const readyWithin = 2 * time.Second

// Readiness is what readyz answers.
type Readiness struct {
	Status string   `json:"status"`         // "ok"; "degraded": Redis is away, ledger-backed routes are served; "unavailable": the ledger is away
	Away   []string `json:"away,omitempty"` // "redis", "postgres", "sqlite"
}

// Ready asks both stores at once, for at most two seconds.
func (b *Backends) Ready(ctx context.Context) Readiness {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var store, ledger error
	var asked sync.WaitGroup
	asked.Go(func() { store = b.Store.Ping(ctx) })
	asked.Go(func() { ledger = b.Ledger.Ping(ctx) })
	asked.Wait()
	found := Readiness{Status: "ok"}
	if store != nil {
		found = Readiness{Status: "degraded", Away: []string{b.storeName}}
	}
	if ledger != nil {
		found = Readiness{Status: "unavailable", Away: append(found.Away, b.ledgerName)}
	}
	return found
}

// Operations registers GET /healthz, /readyz and /metrics; use it with chi's Group. They show no address and no error, but are for the people who run
// the server, not for the world: a proxy in front should keep them inside.
func (b *Backends) Operations(m *Metrics) func(chi.Router) {
	return func(r chi.Router) {
		r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
			report(w, http.StatusOK, Readiness{Status: "ok"})
		})
		r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
			found, status := b.Ready(r.Context()), http.StatusOK
			if found.Status == "unavailable" {
				status = http.StatusServiceUnavailable
			}
			report(w, status, found)
		})
		r.Method(http.MethodGet, "/metrics", m.Handler())
	}
}

func report(w http.ResponseWriter, status int, found Readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(found) // a client that left is nobody's error
}
