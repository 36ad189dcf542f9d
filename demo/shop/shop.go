package shop

import (
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/web"
)

// Config is what the shop is made from.
type Config struct {
	Guard   *web.Guard     // required; with Tokens, a Store and a Ledger, mounted at web.DefaultPrefix
	Storage *Storage       // required; in the database of the guard's ledger
	Points  *Points        // granted for guarded orders, while its Run goes on. Nil: they are granted by another process, or later
	Exit    func(code int) // ends the process, for the fault "exit". Nil: os.Exit
	Logger  *slog.Logger   // gets what users are not shown. Nil: slog.Default()
}

// shop is the handlers and what they share.
type shop struct {
	guard   *web.Guard
	storage *Storage
	points  *Points
	site    site
	exit    func(int)
	log     *slog.Logger
}

// New returns the whole shop: pages, API, its static files, and the guard's routes at /idem and /api/idempotent.
func New(c Config) (http.Handler, error) {
	if c.Guard == nil || c.Storage == nil {
		return nil, errors.New("shop: a shop needs a Guard and a Storage")
	}
	s := &shop{guard: c.Guard, storage: c.Storage, points: c.Points, site: newSite(), exit: c.Exit, log: c.Logger}
	if s.exit == nil {
		s.exit = os.Exit
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	r := chi.NewRouter()
	r.Use(server.Headers, middleware.GetHead)
	r.NotFound(s.notFound)
	r.MethodNotAllowed(s.methodNotAllowed)
	s.pages(r)
	s.api(r)
	for _, prefix := range []string{web.DefaultPrefix, "/api/idempotent"} {
		r.Mount(prefix, c.Guard.Routes())
	}
	return r, nil
}

// createOrder is the action of a token, and the business type in the ledger, for everything that makes an order.
const createOrder = "order.create"

func (s *shop) pages(r chi.Router) {
	r.Get("/", s.index)
	r.Get("/orders/{id}", s.receipt)
	r.Get("/assets/{name}", s.site.serve)
	r.With(s.guard.Forms).Get("/spa", s.spa)
	r.With(s.guard.Forms).Get("/double-click", s.doubleClick)
	r.With(s.withFaults, s.guard.Forms).Get("/form", s.showForm)
	r.With(s.withFaults, s.points.after, s.guardOrders()).Post("/form", s.submitForm)
	r.With(s.withFaults).Post("/unguarded/form", s.submitUnguarded)
}

func (s *shop) api(r chi.Router) {
	faults := web.Ignore("delay", "fail")
	r.Get("/api/orders", s.listOrders)
	r.Get("/api/accounts", s.listAccounts)
	r.With(s.withFaults, s.points.after, s.guardOrders()).Post("/api/orders", s.postOrder)
	r.With(s.withFaults).Post("/api/unguarded/orders", s.postUnguarded)
	r.With(s.withFaults, s.guard.Key("refund", web.JSONKey("refundNo"), web.Anonymous(), web.Resolver(s.storage.askGateway), faults)).
		Post("/api/refunds", s.postRefund)
	r.With(s.withFaults, s.guard.Key("transfer", web.HeaderKey("Idempotency-Key"), web.Anonymous(), web.SameTx(), faults)).
		Post("/api/transfers", s.postTransfer)
	r.With(s.withFaults, s.guard.Window("payment", paymentWindow, web.JSONKey("orderNo", "paymentChannel"), web.ReopenOnFailure())).
		Post("/api/payments", s.postPayment)
	r.With(s.withFaults, s.guard.Lock("stock", web.JSONKey("sku"))).Post("/api/stock", s.postStock)
}

// guardOrders is one line for two routes: the form and the API.
func (s *shop) guardOrders() func(http.Handler) http.Handler {
	return s.guard.Token(createOrder, web.Ignore("then", "delay", "fail"))
}

func (s *shop) notFound(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, http.StatusNotFound, "There is nothing at this address.")
}

// methodNotAllowed names the methods that the address takes (RFC 9110, section 15.5.6); chi does so in its own answer only.
func (s *shop) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	routes := chi.RouteContext(r.Context()).Routes
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
			w.Header().Add("Allow", method)
		}
	}
	s.refuse(w, r, http.StatusMethodNotAllowed, "This address does not take "+r.Method+".")
}
