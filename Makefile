GO     ?= go
tools   = -modfile=tools/go.mod
packages = ./...

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

.PHONY: check
check: ## what must hold besides the tests: generated code, format, vet, lint
	$(GO) tool $(tools) templ generate -check
	$(GO) mod tidy -diff
	$(GO) vet $(packages)
	$(GO) tool $(tools) golangci-lint run $(packages)

.PHONY: generate
generate: ## make the Go code of the templ components
	$(GO) tool $(tools) templ generate

.PHONY: format
format: ## format Go and templ files
	gofmt -w .
	$(GO) tool $(tools) templ fmt .

.PHONY: golden
golden: ## accept what the templates render now
	$(GO) test ./templates -update

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
