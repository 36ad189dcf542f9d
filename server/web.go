package server

import (
	"log/slog"
	"net/url"
	"strings"

	"github.com/idemkit/idem/web"
)

// Web is a guard's configuration by these settings, for the application to add to. Each call makes a token limit of its own.
func (c Config) Web(b *Backends, m *Metrics, logger *slog.Logger) web.Config {
	w := web.Config{
		Tokens: b.Tokens, Store: b.Store, Ledger: b.Ledger,
		TLS:   c.TLS(),
		Lease: c.Lease, Wait: c.Wait, Retention: c.Retention, ResultRetention: c.ResultRetention,
		TokenLimit: c.TokenRate.limit(),
		Observe:    m.Observe, Logger: logger,
	}
	if c.ServiceKey != "" {
		w.ServiceKeys = []string{c.ServiceKey.Reveal()}
	}
	if c.Wait == 0 {
		w.Wait = -1 // web's zero is its default
	}
	if origin := c.origin(); origin != "" {
		// Our own, as browsers see it: a proxy that changes Host must not make it another's.
		w.Origins = []string{origin}
	}
	return w
}

// TLS reports whether browsers see HTTPS.
func (c Config) TLS() bool { return strings.HasPrefix(c.origin(), "https://") }

// origin of PublicURL as browsers write it (RFC 6454, section 6.2): lower case, no default port. Empty: there is none.
func (c Config) origin() string {
	u, err := url.Parse(strings.ToLower(c.PublicURL))
	if err != nil || u.Host == "" {
		return ""
	}
	host := u.Host
	for scheme, port := range map[string]string{"http": ":80", "https": ":443"} {
		if u.Scheme == scheme {
			host = strings.TrimSuffix(host, port)
		}
	}
	return u.Scheme + "://" + host
}
