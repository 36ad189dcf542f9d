package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/web"
)

// readyWithin bounds readyz: whoever asks gives up sooner or later.
const readyWithin = 2 * time.Second

// readiness is what healthz and readyz answer.
type readiness struct {
	Status string   `json:"status"`         // web.Status.State
	Away   []string `json:"away,omitempty"` // "redis", "postgres", "sqlite"
}

// Operations registers GET /healthz, /readyz and /metrics; use it with chi's Group. They show no address and no error, but are for the people who run
// the server, not for the world: a proxy in front should keep them inside.
func (b *Backends) Operations(guard *web.Guard, m *Metrics) func(chi.Router) {
	return func(r chi.Router) {
		r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
			report(w, http.StatusOK, readiness{Status: "ok"})
		})
		r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
			defer cancel()
			found, status := b.readiness(guard.Check(ctx)), http.StatusOK
			if found.Status == "unavailable" {
				status = http.StatusServiceUnavailable
			}
			report(w, status, found)
		})
		r.Method(http.MethodGet, "/metrics", m.Handler())
	}
}

// readiness names what is away.
func (b *Backends) readiness(s web.Status) readiness {
	found := readiness{Status: s.State}
	if s.Store != nil {
		found.Away = append(found.Away, b.storeName)
	}
	if s.Ledger != nil {
		found.Away = append(found.Away, b.ledgerName)
	}
	return found
}

func report(w http.ResponseWriter, status int, found readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(found) // a client that left is nobody's error
}
