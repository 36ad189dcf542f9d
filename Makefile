GO     ?= go
tools   = -modfile=tools/go.mod
packages = ./...
bundle   = $(GO) tool $(tools) esbuild js/idem-client.js --bundle --minify --format=esm --target=es2022 --legal-comments=none

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the demo shop on http://127.0.0.1:8080; needs only Go
	$(GO) run ./demo

.PHONY: test
test: components ## install what is missing (apt-get, as root) and run all tests, with the race detector
	$(GO) test -race -shuffle=on -timeout 15m $(packages)
	$(GO) test -run TestMillionKeys ./stores/memstore # all million: the race detector has them be fewer
	node --test js/*.test.mjs

.PHONY: components
components:
	@scripts/components
	@$(MAKE) --no-print-directory js/node_modules

js/node_modules: js/package-lock.json
	cd js && npm ci --no-audit --no-fund
	@touch $@

.PHONY: check
check: js/node_modules ## what must hold besides the tests: generated code, types, format, vet, lint
	$(GO) tool $(tools) templ generate -check
	$(bundle) | cmp - js/idem-client.min.js
	js/node_modules/.bin/tsc --project js
	$(GO) mod tidy -diff
	$(GO) vet $(packages)
	$(GO) tool $(tools) golangci-lint run $(packages)

.PHONY: generate
generate: ## make the Go code of the templ components, and the browser client in one file
	$(GO) tool $(tools) templ generate
	$(bundle) --outfile=js/idem-client.min.js

.PHONY: format
format: ## format Go and templ files
	gofmt -w .
	$(GO) tool $(tools) templ fmt .

.PHONY: golden
golden: ## accept what the templates render now
	$(GO) test ./templates -update

.PHONY: screenshots
screenshots: components ## make a picture of every page in every state, on phone and desk, light and dark: artifacts/screenshots
	SCREENSHOTS=$(CURDIR)/artifacts/screenshots $(GO) test -count=1 -run '^TestEveryPage$$' ./e2e

.PHONY: picture
picture: components ## make the README's picture of the double-clicked page: docs/double-click.png
	SCREENSHOTS=$(CURDIR)/docs $(GO) test -count=1 -run '^TestDoubleClickPage$$' ./e2e

.PHONY: gestures
gestures: components ## submit twice in four ways, with and without the client, and print the POSTs and orders that came of it
	$(GO) test -count=1 -v -run '^TestGestures$$' ./e2e

.PHONY: million
million: components ## purge a million rows of Postgres beside traffic, which takes minutes
	$(GO) test -tags million -run TestPurgeWhileOtherKeysAreClaimed -timeout 30m -v ./stores/pgstore

.PHONY: fuzz
fuzz: ## run every fuzz target for half a minute
	@$(GO) list $(packages) | while read -r package; do \
		$(GO) test -list '^Fuzz' "$$package" | grep '^Fuzz' | while read -r target; do \
			echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime 30s "$$package" || exit 1; \
		done || exit 1; \
	done
