package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/server"
)

// scrape is what Prometheus would read.
func scrape(m *server.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	refused := func(err error) idem.Event {
		return idem.Event{Kind: idem.Answered, Type: "order", Err: fmt.Errorf("%w: %w", err, errors.New("why"))}
	}
	for name, c := range map[string]struct {
		event idem.Event
		want  string
	}{
		"executed":         {idem.Event{Kind: idem.Answered, Type: "order", State: idem.Succeeded, Attempt: 1}, `idem_calls_total{outcome="executed",type="order"} 1`},
		"failed":           {idem.Event{Kind: idem.Answered, Type: "order", State: idem.Failed, Attempt: 1}, `idem_calls_total{outcome="failed",type="order"} 1`},
		"unknown":          {idem.Event{Kind: idem.Answered, Type: "order", State: idem.Processing, Attempt: 1}, `idem_calls_total{outcome="unknown",type="order"} 1`},
		"replayed":         {idem.Event{Kind: idem.Answered, Type: "order", State: idem.Succeeded, Replayed: true}, `idem_calls_total{outcome="replayed",type="order"} 1`},
		"in progress":      {refused(idem.ErrInProgress), `idem_calls_total{outcome="in_progress",type="order"} 1`},
		"payload mismatch": {refused(idem.ErrPayloadMismatch), `idem_calls_total{outcome="payload_mismatch",type="order"} 1`},
		"key taken":        {refused(idem.ErrKeyTaken), `idem_calls_total{outcome="key_taken",type="order"} 1`},
		"cancelled":        {refused(idem.ErrCancelled), `idem_calls_total{outcome="cancelled",type="order"} 1`},
		"already done":     {refused(idem.ErrAlreadyDone), `idem_calls_total{outcome="already_done",type="order"} 1`},
		"token used":       {refused(idem.ErrTokenUsed), `idem_calls_total{outcome="token_used",type="order"} 1`},
		"token expired":    {refused(idem.ErrTokenExpired), `idem_calls_total{outcome="token_expired",type="order"} 1`},
		"outcome unknown":  {refused(idem.ErrOutcomeUnknown), `idem_calls_total{outcome="outcome_unknown",type="order"} 1`},
		"claim lost":       {refused(idem.ErrClaimLost), `idem_calls_total{outcome="claim_lost",type="order"} 1`},
		"unavailable":      {refused(idem.ErrUnavailable), `idem_calls_total{outcome="store_unavailable",type="order"} 1`},
		"store timed out": {
			idem.Event{Kind: idem.Answered, Type: "order", Err: fmt.Errorf("%w: %w", idem.ErrUnavailable, context.DeadlineExceeded)},
			`idem_calls_total{outcome="store_unavailable",type="order"} 1`,
		},
		"unknown format":  {refused(idem.ErrFormat), `idem_calls_total{outcome="store_unavailable",type="order"} 1`},
		"client left":     {refused(context.Canceled), `idem_calls_total{outcome="client_left",type="order"} 1`},
		"duration":        {idem.Event{Kind: idem.Answered, State: idem.Succeeded, Took: 30 * time.Millisecond}, `idem_call_duration_seconds_bucket{outcome="executed",le="0.05"} 1`},
		"duration's sum":  {idem.Event{Kind: idem.Answered, State: idem.Succeeded, Took: 30 * time.Millisecond}, `idem_call_duration_seconds_sum{outcome="executed"} 0.03`},
		"entrance failed": {idem.Event{Kind: idem.EntranceFailed, Type: "order"}, `idem_entrance_failures_total 1`},
		"claim is lost":   {idem.Event{Kind: idem.ClaimLost, Type: "order"}, `idem_claims_lost_total{type="order"} 1`},
		"release failed":  {idem.Event{Kind: idem.ReleaseFailed, Type: "order"}, `idem_releases_failed_total{type="order"} 1`},
		"outcome lost":    {idem.Event{Kind: idem.OutcomeLost, Type: "order"}, `idem_outcomes_lost_total{type="order"} 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := server.NewMetrics()
			m.Observe(t.Context(), c.event)
			if text := scrape(m); !strings.Contains(text, "\n"+c.want+"\n") {
				t.Errorf("%s is not in\n%s", c.want, text)
			}
		})
	}
}

func TestMetricsHaveTheirOwnRegistry(t *testing.T) {
	t.Parallel()
	one, other := server.NewMetrics(), server.NewMetrics()
	one.Registry().MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "shop_orders"}, func() float64 { return 7 }))
	if !strings.Contains(scrape(one), "shop_orders 7") {
		t.Error("the application's own is missing")
	}
	one.Observe(t.Context(), idem.Event{Kind: idem.EntranceFailed})
	if !strings.Contains(scrape(one), "idem_entrance_failures_total 1") || !strings.Contains(scrape(other), "idem_entrance_failures_total 0") {
		t.Error("two of them share a count")
	}
	for _, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "process_open_fds"} {
		if !strings.Contains(scrape(one), "\n"+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
}
