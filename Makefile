# Hato's commands. `make run` and `make test` set up what they need; if they cannot, they say what is missing.

SWIFT ?= swift
DATA ?= ./hato-data
COMPOSE ?= docker compose
SWIFT_FLAGS = --explicit-target-dependency-import-check error
# All tests of a process start at once: some hundred that wait for clocks and sockets would delay each other too long,
# so there are seven processes. Tests that start programs have processes of their own: Foundation's Process reads past
# the end of a list of more than 1,365 open files. So have those of them that open hundreds of connections.
EMPTY =
SPACE = $(EMPTY) $(EMPTY)
PROGRAM_TESTS = ^Integration\.
CONNECTION_TESTS = ^Integration\.(ConnectionFloods|RunningPrograms|SilentListeners)
# Those of the folder Tests/Integration/Gateway: a suite has the name of its file.
GATEWAY_SUITES = $(notdir $(basename $(wildcard Tests/Integration/Gateway/*.swift)))
GATEWAY_TESTS = ^Integration\.($(subst $(SPACE),|,$(strip $(GATEWAY_SUITES))))
FAULT_TESTS = ^Fault\.
WIRE_TESTS = ^Hato(RPC|Command|Runtime|Auth|Fetch|Follow|Identity|Mail|Push)Tests\.
STORE_TESTS = ^Hato(Storage|Messages|Notifier)Tests\.
# Tests that start programs: with some 1,400 open files, starting one may end the process of the tests (a fault of
# Foundation's Process on Linux, swift-corelibs-foundation #5472).
FEW_AT_ONCE = SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=16
DEBIAN_PACKAGES = libargon2-dev libcrypt-dev librocksdb-dev libssl-dev zlib1g-dev
# Release binaries for Linux contain the Swift runtime and RocksDB: scripts/static-libraries has the reasons.
ifeq ($(shell uname -s),Linux)
RELEASE_FLAGS = -c release --static-swift-stdlib
RELEASE_LIBRARIES = PKG_CONFIG_PATH="$$(./scripts/static-libraries)$${PKG_CONFIG_PATH:+:$$PKG_CONFIG_PATH}" \
  HATO_ALLOCATOR="$$(./scripts/allocator)"
else
RELEASE_FLAGS = -c release
RELEASE_LIBRARIES = PKG_CONFIG_PATH
endif

.PHONY: run test setup allocator rocksdb build bench lint check format interop-test compose-test secrets images pages clean

run: setup allocator ## build everything and start the services and the gateway on the embedded store
	export $(RELEASE_LIBRARIES); for product in hato-dev hato-auth hato-messages hato-notifier hato-gateway; do \
	  $(SWIFT) build $(SWIFT_FLAGS) $(RELEASE_FLAGS) --product $$product || exit 1; done
	@echo "Binaries: $$($(SWIFT) build -c release --show-bin-path)"
	@echo "Data:     $(DATA) (delete the folder to start anew)"
	@echo "Gateway:  http://127.0.0.1:7700 speaks Firebase's protocols: Services/Gateway/README.md"
	@echo "Next:     open a second terminal and paste the session of README.md. Stop with control-C."
	exec "$$($(SWIFT) build -c release --show-bin-path)/hato-dev" --data "$(DATA)"

test: setup ## run all tests
	$(SWIFT) build $(SWIFT_FLAGS) --build-tests
	$(SWIFT) test --skip-build --skip '$(WIRE_TESTS)' --skip '$(STORE_TESTS)' --skip '$(PROGRAM_TESTS)' --skip '$(FAULT_TESTS)'
	$(SWIFT) test --skip-build --filter '$(WIRE_TESTS)'
	$(SWIFT) test --skip-build --filter '$(STORE_TESTS)'
	$(FEW_AT_ONCE) $(SWIFT) test --skip-build --filter '$(PROGRAM_TESTS)' --skip '$(CONNECTION_TESTS)' --skip '$(GATEWAY_TESTS)'
	$(FEW_AT_ONCE) $(SWIFT) test --skip-build --filter '$(GATEWAY_TESTS)'
	$(SWIFT) test --skip-build --filter '$(CONNECTION_TESTS)'
	$(SWIFT) test --skip-build --filter '$(FAULT_TESTS)'

build: setup
	$(SWIFT) build $(SWIFT_FLAGS) --build-tests

setup: ## install what is missing, or print the exact command
	@command -v $(SWIFT) >/dev/null || { echo "Swift 6.2 or newer is missing: see https://www.swift.org/install"; exit 1; }
	@missing=""; for p in $(DEBIAN_PACKAGES); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
	  if ! command -v apt-get >/dev/null; then echo "missing C libraries: RocksDB, OpenSSL, zlib, libxcrypt and Argon2 with their headers"; exit 1; \
	  elif [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; \
	  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo apt-get update -qq && sudo apt-get install -y -qq --no-install-recommends $$missing; \
	  else echo "missing packages; run: sudo apt-get install$$missing"; exit 1; fi; fi

allocator: setup ## jemalloc for release builds, where it can be had
	@dpkg-query -W -f '$${Status}' libjemalloc-dev 2>/dev/null | grep -q 'ok installed' \
	  || { [ "$$(id -u)" = 0 ] && apt-get install -y -qq --no-install-recommends libjemalloc-dev >/dev/null 2>&1; } \
	  || echo "Without jemalloc, posts take a fifth more processor time; for it: sudo apt-get install libjemalloc-dev"

rocksdb: setup ## RocksDB without assertions, for release builds to link in place of Debian's; takes some 40 minutes, once
	@./scripts/build-rocksdb

lint: ## formatting
	$(SWIFT) format lint --strict --parallel --recursive Package.swift Services Shared Tests Benchmarks/Package.swift Benchmarks/hato-bench

check: lint ## formatting and the rules of the repository itself
	$(SWIFT) test --filter Tidy

format:
	$(SWIFT) format --in-place --parallel --recursive Package.swift Services Shared Tests Benchmarks/Package.swift Benchmarks/hato-bench

bench: setup allocator ## the table of speed and memory, release build; BENCH="--only reads" for a part of it
	export $(RELEASE_LIBRARIES); for product in hato-dev hato-gateway hato-messages hato-bench; do \
	  $(SWIFT) build $(RELEASE_FLAGS) --package-path Benchmarks --product $$product || exit 1; done
	"$$($(SWIFT) build -c release --package-path Benchmarks --show-bin-path)/hato-bench" $(BENCH)

interop-test: ## independent clients, in a virtual environment of their own
	@./Tests/Interop/run

compose-test: ## the images and README.md's session with containers, with docker compose or podman-compose
	@./Tests/Compose/run

secrets: ## the administrator key of compose.yaml, and a key for each service that calls others
	@./scripts/make-secrets

images: ## the images of compose.yaml; COMPOSE=podman-compose where there is no Docker
	$(COMPOSE) build auth
	$(COMPOSE) build messages notifier gateway

pages: ## write each service's METHODS.md and SETTINGS.md from its declarations
	HATO_WRITE_PAGES=1 $(SWIFT) test --filter 'Tidy.(MethodPages|SettingsPages)'

clean:
	rm -rf .build Benchmarks/.build .venv-interop .venv-interop-pyrebase
