package web

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem/stores/memstore"
)

func FuzzHeaderItem(f *testing.F) {
	for _, seed := range []string{"a", `"a"`, `"a\\b"`, `"a\"`, `a;b=1`, `"a";b`, ";", `""`, "\x00", "\u00a0", `"a" x`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.TrimSpace(line) == "" {
			return
		}
		key, ok := headerItem(strings.TrimSpace(line))
		if !ok {
			return
		}
		if key == "" || !visible(key) {
			t.Errorf("%q gave the key %q", line, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, ok := headerItem(quoted); !ok || again != key {
			t.Errorf("%q gave %q, and quoted %q", line, key, again)
		}
	})
}

// fingerprintOf is what a request's payload counts as.
func fingerprintOf(t *testing.T, contentType string, body []byte) []byte {
	t.Helper()
	guard, err := New(Config{Ledger: memstore.New(memstore.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	s := guard.route("a", nil).submission(httptest.NewRecorder(), r)
	defer s.close()
	if failure := s.read(); failure != nil {
		t.Fatal(failure.code)
	}
	fingerprint, failure := s.fingerprint(nil)
	if failure != nil {
		t.Fatal(failure.code)
	}
	return fingerprint
}

func FuzzForm(f *testing.F) {
	f.Add("application/x-www-form-urlencoded", []byte("a=1&b=%zz&=&&a"))
	f.Add("multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--"))
	f.Add("multipart/form-data", []byte("--b"))
	f.Add("application/json", []byte(`{"a":[`))
	f.Add(";", []byte{0})
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		one, two := fingerprintOf(t, contentType, body), fingerprintOf(t, contentType, bytes.Clone(body))
		if !bytes.Equal(one, two) {
			t.Error("one body has two fingerprints")
		}
	})
}

// Equal contents under different boundaries are equal; a changed value is not.
func FuzzMultipart(f *testing.F) {
	f.Add("a", "1", "x.txt", []byte("content"))
	f.Add("", "\r\n--b", "", []byte("\r\n"))
	f.Add("a\"b", "=3D", "d/x", []byte{0, 255})
	f.Fuzz(func(t *testing.T, name, value, file string, content []byte) {
		form := func(value string) (string, []byte) {
			var out bytes.Buffer
			w := multipart.NewWriter(&out)
			_ = w.WriteField(name, value)
			part, err := w.CreateFormFile("f", file)
			if err == nil {
				_, _ = part.Write(content)
			}
			_ = w.Close()
			return w.FormDataContentType(), out.Bytes()
		}
		contentType, body := form(value)
		again, other := form(value)
		if contentType == again {
			return
		}
		first := fingerprintOf(t, contentType, body)
		if form := readFields("multipart/form-data", strings.TrimPrefix(contentType, "multipart/form-data; boundary="), bytes.NewReader(body)); !form.whole {
			return // a name that makes no part header
		}
		if !bytes.Equal(first, fingerprintOf(t, again, other)) {
			t.Error("the boundary counts")
		}
		changedType, changed := form(value + "x")
		if bytes.Equal(first, fingerprintOf(t, changedType, changed)) && name != tokenField && name != requestIDField {
			t.Error("the value does not count")
		}
	})
}
