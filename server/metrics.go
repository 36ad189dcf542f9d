package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/idemkit/idem"
)

// Metrics counts the engine's events for Prometheus, in a registry of its own. It is safe for concurrent use.
//
//	idem_calls_total{type,outcome}                 guarded calls that reached the stores
//	idem_call_duration_seconds{outcome}            how long they took, waiting included
//	idem_entrance_failures_total                   times the entrance store did not answer
//	idem_claims_lost_total{type}                   work that went on without its claim
//	idem_releases_failed_total{type}               claims that their lease must end
//	idem_outcomes_lost_total{type}                 work that succeeded and whose result could not be recorded
//
// outcome is executed, failed or unknown where this call ran the work, replayed, or a problem's code where it was refused; "client_left"
// where the caller left while waiting. type is the action or business type.
type Metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	entrance prometheus.Counter
	lost     *prometheus.CounterVec
	releases *prometheus.CounterVec
	outcomes *prometheus.CounterVec
}

// NewMetrics makes them, with those of Go's runtime and of the process.
func NewMetrics() *Metrics {
	perType := func(name, help string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"type"}, more...))
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		calls:    perType("idem_calls_total", "Guarded calls that reached the stores.", "outcome"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "idem_call_duration_seconds", Help: "How long guarded calls took, waiting included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"outcome"}),
		entrance: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "idem_entrance_failures_total", Help: "Times the entrance store did not answer and the ledger decided alone.",
		}),
		lost:     perType("idem_claims_lost_total", "Work that went on without its claim and was cancelled."),
		releases: perType("idem_releases_failed_total", "Claims that could not be released; their lease ends them."),
		outcomes: perType("idem_outcomes_lost_total", "Work that succeeded and whose result could not be recorded."),
	}
	m.registry.MustRegister(m.calls, m.duration, m.entrance, m.lost, m.releases, m.outcomes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Registry takes the application's own metrics, too.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler answers with all of them in Prometheus' text.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Observe is a web.Config.Observe.
func (m *Metrics) Observe(_ context.Context, e idem.Event) {
	switch e.Kind {
	case idem.Answered:
		outcome := outcomeOf(e)
		m.calls.WithLabelValues(e.Type, outcome).Inc()
		m.duration.WithLabelValues(outcome).Observe(e.Took.Seconds())
	case idem.EntranceFailed:
		m.entrance.Inc()
	case idem.ClaimLost:
		m.lost.WithLabelValues(e.Type).Inc()
	case idem.ReleaseFailed:
		m.releases.WithLabelValues(e.Type).Inc()
	case idem.OutcomeLost:
		m.outcomes.WithLabelValues(e.Type).Inc()
	}
}

func outcomeOf(e idem.Event) string {
	switch {
	case e.Err != nil:
		return refusalOf(e.Err)
	case e.Replayed:
		return "replayed"
	case e.State == idem.Succeeded:
		return "executed"
	case e.State == idem.Failed:
		return "failed"
	}
	return "unknown"
}

// refusalOf names errors as the contract's codes do.
func refusalOf(err error) string {
	for _, known := range []struct {
		err  error
		code string
	}{
		{context.Canceled, "client_left"},
		{context.DeadlineExceeded, "client_left"},
		{idem.ErrInProgress, "in_progress"},
		{idem.ErrPayloadMismatch, "payload_mismatch"},
		{idem.ErrKeyTaken, "key_taken"},
		{idem.ErrCancelled, "cancelled"},
		{idem.ErrAlreadyDone, "already_done"},
		{idem.ErrTokenUsed, "token_used"},
		{idem.ErrTokenExpired, "token_expired"},
		{idem.ErrOutcomeUnknown, "outcome_unknown"},
		{idem.ErrClaimLost, "claim_lost"},
	} {
		// A store that timed out joins the context's error with idem.ErrUnavailable; then nobody left.
		if errors.Is(err, known.err) && !errors.Is(err, idem.ErrUnavailable) {
			return known.code
		}
	}
	return "store_unavailable"
}
