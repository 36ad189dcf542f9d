package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// form of an answer.
type format int

const (
	asJSON format = iota
	asPage
	asFragment
)

// wanted: HTML only where the client ranks text/html above JSON; a tie, or a bare */*, is JSON. htmx says what it is.
func wanted(r *http.Request) format {
	if r.Header.Get("HX-Request") == "true" {
		return asFragment
	}
	accept := r.Header.Values("Accept")
	json := max(quality(accept, "application", "json"), quality(accept, "application", "problem+json"))
	if quality(accept, "text", "html") > json {
		return asPage
	}
	return asJSON
}

// quality is what the most specific range that matches gives (RFC 9110, section 12.5.1).
func quality(accept []string, major, minor string) float64 {
	best, q := -1, 0.0
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			mediaType, parameters, err := mime.ParseMediaType(strings.TrimSpace(item))
			if err != nil {
				continue
			}
			specific := -1
			switch mediaType {
			case major + "/" + minor:
				specific = 2
			case major + "/*":
				specific = 1
			case "*/*":
				specific = 0
			}
			if specific > best {
				best, q = specific, weight(parameters["q"])
			}
		}
	}
	return q
}

func weight(text string) float64 {
	if text == "" {
		return 1
	}
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || q < 0 || q > 1 {
		return 0
	}
	return q
}
