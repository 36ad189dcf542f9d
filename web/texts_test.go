package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
)

// Every code has a title and a text of its own in English and in Chinese; a Chinese one is no English one that was forgotten.
func TestEveryCodeSpeaksBothLanguages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	said := map[string]string{}
	for code, status := range allCodes() {
		for _, language := range []string{"en", "zh"} {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Accept-Language", language)
			rec := httptest.NewRecorder()
			f.guard.Refuse(rec, r, code, 0)
			p := refused(t, rec, status, code)
			for _, text := range []string{p.Title, p.Detail} {
				if chinese := strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }); chinese != (language == "zh") {
					t.Errorf("%s in %s: %q", code, language, text)
				}
				if other, ok := said[text]; ok {
					t.Errorf("%s and %s both say %q", code, other, text)
				}
				said[text] = code
			}
		}
	}
}
