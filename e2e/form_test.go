package e2e_test

import (
	"bytes"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const tokenField = "idempotent_token"

// formToken is the token of the page's first form.
func (v *visitor) formToken(page answer) string {
	v.Helper()
	found := regexp.MustCompile(`name="idempotent_token" value="([^"]+)"`).FindStringSubmatch(page.body)
	if found == nil {
		v.Fatalf("no token in %s", page.body)
	}
	v.demo.secret(found[1])
	return found[1]
}

// filled is a submission of the order form, with a file.
func (v *visitor) filled(path string, fields ...string) *http.Request {
	v.Helper()
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	return v.multipart(path, values, "attachment", "wishes.txt", "with a lid")
}

// multipart is a submission as a browser sends it: the token in front, the file last, and each call with a boundary of its own.
func (v *visitor) multipart(path string, fields url.Values, fileField, fileName, content string) *http.Request {
	v.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(name string) bool { return name == tokenField })
	for _, name := range append([]string{tokenField}, others...) {
		for _, value := range fields[name] {
			must(v.T, form.WriteField(name, value))
		}
	}
	file, err := form.CreateFormFile(fileField, fileName)
	must(v.T, err)
	_, err = file.Write([]byte(content))
	must(v.T, err)
	must(v.T, form.Close())
	return v.request(http.MethodPost, path, body.String(), "Content-Type", form.FormDataContentType(),
		"Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
}

func formTwice(v *visitor) {
	page := v.get("/form")
	v.want(page, http.StatusOK)
	if page.Header.Get("Cache-Control") != "no-store" {
		v.Errorf("a page with a token may be cached: %v", page.Header)
	}
	token, item := v.formToken(page), v.item()
	wrong := v.do(v.filled("/form", tokenField, token, "item", item, "quantity", "0", "then", "receipt"))
	v.want(wrong, http.StatusUnprocessableEntity)
	again := v.formToken(wrong) // the same intention
	first := v.do(v.filled("/form", tokenField, again, "item", item, "quantity", "2", "then", "receipt"))
	v.want(first, http.StatusSeeOther)
	second := v.do(v.filled("/form", tokenField, again, "item", item, "quantity", "2", "then", "another"))
	v.want(second, http.StatusSeeOther)
	if first.Header.Get("Location") != second.Header.Get("Location") || !replayed(second) {
		v.Errorf("to %q, then to %q", first.Header.Get("Location"), second.Header.Get("Location"))
	}
	v.wantOrders(item, 1)
	receipt := v.get(first.Header.Get("Location"))
	v.want(receipt, http.StatusOK)
	for _, text := range []string{item, "by everybody: 1.", "wishes.txt", "number 2"} {
		if !strings.Contains(receipt.body, text) {
			v.Errorf("the receipt does not say %q", text)
		}
	}
	// The renewed token and the first one are the same intention: its request id was answered.
	late := v.do(v.filled("/form", tokenField, token, "item", item, "quantity", "2", "then", "receipt"))
	v.want(late, http.StatusSeeOther)
	v.wantOrders(item, 1)
}

func formAtOnce(v *visitor) {
	token, item := v.formToken(v.get("/form?delay=300ms")), v.item()
	answers := v.together(20, func(int) *http.Request {
		return v.filled("/form?delay=300ms", tokenField, token, "item", item, "quantity", "1", "then", "receipt")
	})
	for _, a := range answers {
		v.want(a, http.StatusSeeOther)
		if a.Header.Get("Location") != answers[0].Header.Get("Location") {
			v.Errorf("to %q and to %q", a.Header.Get("Location"), answers[0].Header.Get("Location"))
		}
	}
	v.wantOrders(item, 1)
}

// encoded is a submission without a file.
func (v *visitor) encoded(path string, fields url.Values, header ...string) *http.Request {
	v.Helper()
	return v.request(http.MethodPost, path, fields.Encode(), append([]string{
		"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html",
	}, header...)...)
}
