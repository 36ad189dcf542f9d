package shop_test

import (
	"net/http"
	"strings"
	"testing"
)

// bodies of an order, for the guarded and the unguarded route alike.
func TestBodyOfAnOrder(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"an order":                  {`{"item":"cup","quantity":1}`, 201, `"item":"cup","quantity":1`},
		"the other way round":       {`{"quantity":99,"item":"cup"}`, 201, `"quantity":99`},
		"space around":              {" \n{\"item\" : \"cup\", \"quantity\" : 2}\n ", 201, `"quantity":2`},
		"Chinese":                   {`{"item":"茶壶","quantity":1}`, 201, `茶壶`},
		"escapes":                   {`{"item":"\u8336","quantity":1}`, 201, `茶`},
		"200 characters":            {one(strings.Repeat("壶", 200)), 201, ``},
		"nothing":                   {``, 400, `one JSON object`},
		"not JSON":                  {`item=cup`, 400, `one JSON object`},
		"an array":                  {`[{"item":"cup","quantity":1}]`, 400, `one JSON object`},
		"null":                      {`null`, 400, `one JSON object`},
		"cut off":                   {`{"item":"cup","quantity":1`, 400, `not JSON`},
		"cut off in a value":        {`{"item":"cup","quantity":`, 400, `not JSON`},
		"no comma":                  {`{"item":"cup" "quantity":1}`, 400, `not JSON`},
		"a comma too many":          {`{"item":"cup","quantity":1,}`, 400, `not JSON`},
		"bare words":                {`{item:"cup"}`, 400, `not JSON`},
		"leading zero":              {`{"item":"cup","quantity":01}`, 400, `not JSON`},
		"something behind":          {`{"item":"cup","quantity":1}{}`, 400, `behind the JSON object`},
		"garbage behind":            {`{"item":"cup","quantity":1}x`, 400, `behind the JSON object`},
		"unknown member":            {`{"item":"cup","quantity":1,"price":0}`, 400, `\"price\" is not known; the members are item, quantity`},
		"member in another case":    {`{"Item":"cup","quantity":1}`, 400, `\"Item\" is not known`},
		"member twice":              {`{"item":"cup","quantity":1,"quantity":2}`, 400, `\"quantity\" is repeated`},
		"member twice, by escape":   {`{"item":"cup","quantity":1,"\u0071uantity":2}`, 400, `\"quantity\" is repeated`},
		"too deep":                  {`{"item":` + deep + `,"quantity":1}`, 400, `not JSON`},
		"not UTF-8":                 {"{\"item\":\"\xff\",\"quantity\":1}", 400, `not UTF-8`},
		"no item":                   {`{"quantity":1}`, 422, `"field":"item","detail":"is required"`},
		"item null":                 {`{"item":null,"quantity":1}`, 422, `"item","detail":"must be a string"`},
		"item a number":             {`{"item":7,"quantity":1}`, 422, `"item","detail":"must be a string"`},
		"item empty":                {`{"item":"","quantity":1}`, 422, `"item","detail":"is required"`},
		"item blank":                {`{"item":" \t ","quantity":1}`, 422, `"item","detail":"is required"`},
		"item too long":             {one(strings.Repeat("x", 201)), 422, `at most 200 characters`},
		"item with NUL":             {`{"item":"a\u0000b","quantity":1}`, 422, `control characters`},
		"item with a line break":    {`{"item":"a\nb","quantity":1}`, 422, `control characters`},
		"no quantity":               {`{"item":"cup"}`, 422, `"quantity","detail":"is required"`},
		"quantity 0":                {`{"item":"cup","quantity":0}`, 422, `from 1 to 99`},
		"quantity negative":         {`{"item":"cup","quantity":-1}`, 422, `from 1 to 99`},
		"quantity 100":              {`{"item":"cup","quantity":100}`, 422, `from 1 to 99`},
		"quantity a fraction":       {`{"item":"cup","quantity":1.5}`, 422, `from 1 to 99`},
		"quantity beyond 64 bits":   {`{"item":"cup","quantity":99999999999999999999}`, 422, `from 1 to 99`},
		"quantity text":             {`{"item":"cup","quantity":"1"}`, 422, `from 1 to 99`},
		"quantity null":             {`{"item":"cup","quantity":null}`, 422, `from 1 to 99`},
		"quantity true":             {`{"item":"cup","quantity":true}`, 422, `from 1 to 99`},
		"both wrong, both are told": {`{}`, 422, `"detail":"item is required; quantity is required"`},
		"an empty object":           {`{}`, 422, `"field":"quantity"`},
		"larger than the shop reads": {
			one(strings.Repeat("x", 2<<20)), 413, `too large`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			for route, a := range map[string]answer{
				"guarded":   s.order(s.token(), "", c.body),
				"unguarded": s.post("/api/unguarded/orders", c.body),
			} {
				s.want(a, c.status)
				if !strings.Contains(a.body, c.says) {
					t.Errorf("%s: %.300s, want %s", route, a.body, c.says)
				}
				if c.status != http.StatusCreated && a.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%s: Content-Type %q", route, a.Header.Get("Content-Type"))
				}
			}
		})
	}
}
