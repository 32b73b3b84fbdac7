# Rectifier. `make` lists the targets. Nothing is needed but Go, git, make and a C
# compiler (for the race detector): servers and linters are built from Go modules
# of their own, and the servers are cached outside the tree (see
# docs/adr/0001-control-plane-from-go-modules.md). Only test-ops takes more:
# Prometheus and Chromium, which it installs on Debian.

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
.PHONY: help build test test-ops deploy-test ops-packages chaos bench bench-program bench-micro benchstat test-unit test-cluster skew fuzz lint release image cross demo cluster control-plane controller-manager kubectl helm clean

help: ## List the targets
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build
build: ## Build bin/rectifier
	$(GO) build -buildvcs=auto -ldflags '-X main.version=$(VERSION)' -o bin/rectifier ./cmd/rectifier

clean: ## Remove bin and dist (the servers stay in the cache)
	rm -rf bin dist

##@ Test
# Tests named TestUnraced… are of one goroutine and try many cases, where the race
# detector finds nothing and takes four times as long, or measure memory, which it falsifies.
# -parallel is for tests on one API server that wait most of their time (t.Parallel).
test: control-plane lint ## Lint, then run all tests, with the race detector and on a real API server too
	$(GO) test -run '^TestUnraced' $$(grep -rlE --include='*_test.go' '^func TestUnraced' . | xargs -n1 dirname | sort -u)
	$(GO) test -race -p 3 -parallel 4 -timeout 30m -skip '^TestUnraced' ./...

# -count=1: helm and Prometheus read files of the tree that the test cache does not know of.
test-ops: control-plane controller-manager kubectl helm ops-packages ## Test what it takes to run: chart, alerts, status page in a browser
	RECTIFIER_OPS=1 $(GO) test -race -count=1 -timeout 20m ./internal/ops/...

deploy-test: control-plane controller-manager kubectl helm ## Install chart and kustomize base on a real API server and run with just their rights
	RECTIFIER_OPS=1 $(GO) test -race -count=1 -timeout 20m -v ./internal/ops/install

# Debian's packages of Prometheus and Chromium. RUNLEVEL=1 keeps Prometheus from
# being started as a service.
OPS_PROGRAMS := prometheus promtool chromium
ops-packages: ## Install Prometheus and Chromium, if they are missing (apt-get)
	@for program in $(OPS_PROGRAMS); do command -v $$program >/dev/null || missing=1; done; \
		test -z "$$missing" || { sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
		$$sudo apt-get update -qq && $$sudo env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus chromium; }

chaos: SOAK ?= 10m
chaos: control-plane controller-manager ## Inject all faults, the long ones too, and print a table (about an hour; FAULT=soak SOAK=2m for a part)
	$(GO) test -c -race -o bin/chaos.test ./internal/chaos
	cd internal/chaos && ../../bin/chaos.test -test.timeout 90m -test.run 'TestChaos/$(FAULT)' -long -soak $(SOAK)

test-unit: ## Run the tests that need no API server
	$(GO) test -race -short ./...

test-cluster: control-plane ## Run the packages that use the real API server
	$(GO) test -race -timeout 30m $(CLUSTER_PKGS)

# VERSION is here a version of Kubernetes, such as 1.34.4. What is built for it
# stays in the cache, beside the version that the tree names.
skew: export RECTIFIER_KUBERNETES_VERSION = $(VERSION)
skew: ## Run the cluster tests on another Kubernetes: make skew VERSION=1.34.4 (docs/version-skew.md)
	@$(BUILD) kube-apiserver etcd >/dev/null
	@$(BUILD) kube-controller-manager >/dev/null || echo "skew: without kube-controller-manager; tests that need it are skipped"
	@$(GO) run ./internal/controlplane/skew $(CLUSTER_PKGS)

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
	$(GO) vet ./... && $(GO) -C internal/release/image vet ./...
	$(STATICCHECK) ./...

##@ Benchmark
# A complete run, with RUNS of 5 or more, writes docs/benchmarks.md, if the tree is
# that of a commit (or FORCE=1). bin/bench -h lists the scenarios for BENCH.
bench: RUNS ?= 5
bench: control-plane bench-program ## Compare with a controller by hand, in 20 minutes (SIZE=large, BENCH='churn|rules', RUNS=5; QUICK=1: does it work?)
	@exec bin/bench -docs -runs '$(RUNS)' -size '$(SIZE)' -bench '$(BENCH)' $(if $(QUICK),-quick) $(if $(FORCE),-force)

bench-program: ## Build bin/bench, for profiles by hand (bin/bench -keep 20000 -churn 250)
	$(GO) build -o bin/bench ./internal/bench

# The steps of one event, each for itself, found in the sources. They need no API
# server. It takes a COUNT of 6 to tell a difference from chance.
MICRO ?= .
COUNT ?= 6
bench-micro benchstat: export KUBE_CACHE_MUTATION_DETECTOR := false
bench-micro: ## Run the Go benchmarks of the steps (MICRO=pattern COUNT=6)
	@packages=$$(internal/bench/benchmarks.sh '$(MICRO)') && \
		$(GO) test -short -run '^$$' -bench '$(MICRO)' -benchmem -count '$(COUNT)' $$(printf './%s ' $$packages)

benchstat: ## Compare them with those of another commit: make benchstat BASE=HEAD~1 (MICRO=pattern COUNT=6 or more)
	@test -n '$(BASE)' || { echo "benchstat: which commit? BASE=HEAD~1, for one"; exit 2; }
	@internal/bench/benchstat.sh '$(BASE)' '$(COUNT)' '$(MICRO)'

##@ Release
release: ## Build binaries for linux and darwin, archives and checksums into dist (docs/release.md; ARGS=--allow-dirty)
	$(GO) run ./internal/release --version '$(VERSION)' $(ARGS)

IMAGE ?= ghcr.io/rectifier-dev/rectifier
image: ## Make the container image for amd64 and arm64, an OCI archive in dist, without docker
	$(GO) run ./internal/release --version '$(VERSION)' --platforms linux/amd64,linux/arm64 --binaries $(ARGS)
	$(GO) -C internal/release/image run . --binaries '$(CURDIR)/dist/bin' --version '$(VERSION)' --name '$(IMAGE)' --output '$(CURDIR)/dist/rectifier_$(VERSION)_image.tar'

# -o /dev/null compiles all and links nothing: about 3 minutes of a core for each
# platform from cold, in flags that `make release` finds in the cache again.
# linux/amd64 is what CI builds anyhow.
CROSS ?= linux/arm64 darwin/amd64 darwin/arm64
cross: ## Compile for the other platforms of a release (CROSS=darwin/arm64 for one)
	@for platform in $(CROSS); do \
		echo "compiling for $$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -trimpath -o /dev/null ./cmd/rectifier || exit 1; \
	done

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

helm: ## Build Helm once and print its path
	@$(GO) run ./internal/ops/install/helm
