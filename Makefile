# Rectifier. `make` lists the targets. Nothing is needed but Go, git, make and a C
# compiler (for the race detector): servers and linters are built from Go modules
# of their own, and the servers are cached outside the tree (see
# docs/adr/0001-control-plane-from-go-modules.md).

GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BUILD       := $(GO) run ./internal/controlplane/build
STATICCHECK := $(GO) tool -modfile=internal/tools/go.mod staticcheck
# The packages whose tests start a real API server; `go test -short` skips those tests.
CLUSTER_PKGS = $(shell $(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... \
	| awk '/internal\/controlplane/ {print $$1}')

# Every test run panics when somebody modifies an object of an informer's cache.
export KUBE_CACHE_MUTATION_DETECTOR := true

.DEFAULT_GOAL := help
.PHONY: help build test chaos test-unit test-cluster fuzz lint demo cluster control-plane controller-manager kubectl clean

help: ## List the targets
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build
build: ## Build bin/rectifier
	$(GO) build -ldflags '-X main.version=$(VERSION)' -o bin/rectifier ./cmd/rectifier

clean: ## Remove bin (the servers stay in the cache)
	rm -rf bin

##@ Test
test: control-plane lint ## Lint, then run all tests with the race detector, on a real API server too
	$(GO) test -race -timeout 30m ./...

chaos: SOAK ?= 10m
chaos: control-plane controller-manager ## Inject all faults, the long ones too, and print a table (about an hour; FAULT=soak SOAK=2m for a part)
	$(GO) test -c -race -o bin/chaos.test ./internal/chaos
	cd internal/chaos && ../../bin/chaos.test -test.timeout 90m -test.run 'TestChaos/$(FAULT)' -long -soak $(SOAK)

test-unit: ## Run the tests that need no API server
	$(GO) test -race -short ./...

test-cluster: control-plane ## Run the packages that use the real API server
	$(GO) test -race -timeout 30m $(CLUSTER_PKGS)

# Rectifier's own fuzz targets, found in the sources. A finding is written to the
# package's testdata/fuzz, and is from then on a test.
FUZZTIME ?= 30s
fuzz: ## Fuzz each target for FUZZTIME (FUZZ=name for one of them)
	@grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | cut -d' ' -f2 | grep -E '$(or $(FUZZ),.)'); do \
			echo "==> $$dir $$target"; \
			$(GO) test $$dir -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s || exit 1; \
		done; \
	done

lint: ## Check gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l .); \
		test -z "$$unformatted" || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...

##@ Run
demo: export KUBE_CACHE_MUTATION_DETECTOR := false
demo: control-plane ## Show Rectifier at work on a real API server (KEEP=1 leaves it up)
	@$(GO) build -o bin/demo ./internal/demo && exec bin/demo $(if $(KEEP),--keep)

cluster: control-plane ## Run an API server in the foreground (ARGS="--controller-manager --audit --logs")
	@$(GO) build -o bin/cluster ./internal/controlplane/cluster && exec bin/cluster $(ARGS)

control-plane: ## Build kube-apiserver and etcd once, about 10 minutes
	@$(BUILD) kube-apiserver etcd >/dev/null

controller-manager: ## Build kube-controller-manager once
	@$(BUILD) kube-controller-manager >/dev/null

kubectl: ## Build kubectl once and print its path
	@echo $$($(BUILD) kubectl)/kubectl
