package server

import (
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5/middleware"
)

// ClientIP finds the client's address and leaves it where chi's middleware.GetClientIP reads it.
//
// Without a PublicURL it is the connection's, and X-Forwarded-For is not read. With one, something stands in front; then the last entry of
// X-Forwarded-For counts, which is what the nearest proxy itself saw, and only where the connection comes from a loopback or private address. What a
// client writes in front of that entry is never believed. The proxy must append to that header or set it: one that hands a client's own on lets it choose
// its address. Where more than one proxy stands in front, the address is the outer one's, and its clients share a limit; an application that knows
// its proxies puts one of chi's middleware.ClientIPFrom... behind this one, and its finding counts.
func (c Config) ClientIP(next http.Handler) http.Handler {
	direct := middleware.ClientIPFromRemoteAddr(next)
	if c.PublicURL == "" {
		return direct
	}
	forwarded := middleware.ClientIPFromXFFTrustedProxies(1)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Forwarded-For") != "" && fromProxy(r.RemoteAddr) {
			forwarded.ServeHTTP(w, r)
			return
		}
		direct.ServeHTTP(w, r)
	})
}

func fromProxy(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap()
	return addr.IsLoopback() || addr.IsPrivate()
}
