package web

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/idemkit/idem"
)

// unrepeatable headers are not recorded: those of one connection (RFC 9110, section 7.6.1), those of one moment, those that are computed
// afresh, and the kit's own.
func unrepeatable(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Date", "Content-Length", replayedHeader:
		return true
	}
	return strings.HasPrefix(name, http.TrailerPrefix)
}

func redirect(status int) bool {
	return status >= 300 && status < 400 && status != http.StatusNotModified
}

// bodyAllowed by RFC 9110, sections 6.4.1 and 15.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// replay sends the first answer again. An outer middleware's lines of the same name give way, save cookies.
func replay(w http.ResponseWriter, result idem.Result) {
	result.Status = cmp.Or(result.Status, http.StatusOK) // recorded outside HTTP, or told by a resolver
	header := w.Header()
	seen := map[string]bool{}
	for _, line := range result.Header {
		name := http.CanonicalHeaderKey(line[0])
		if unrepeatable(name) {
			continue
		}
		if !seen[name] && name != "Set-Cookie" {
			header.Del(name)
		}
		seen[name] = true
		header[name] = append(header[name], line[1])
	}
	if _, typed := header["Content-Type"]; !typed {
		header["Content-Type"] = nil // net/http is not to guess what the first answer did not say
	}
	header.Set(replayedHeader, "true")
	if bodyAllowed(result.Status) && !redirect(result.Status) {
		header.Set("Content-Length", strconv.Itoa(len(result.Body)))
	}
	w.WriteHeader(result.Status)
	if bodyAllowed(result.Status) {
		_, _ = w.Write(result.Body)
	}
}
