# mmtwin: the two set-up commands are `make demo` and `make test`.
CARGO ?= cargo
BIN = target/release/mmtwin

.PHONY: demo test bench build setup lint

build:
	$(CARGO) build --release --quiet --bin mmtwin

demo: build
	tools/demo.sh $(BIN)

# Installs what the tests compare against, then runs every check.
test: setup lint
	$(CARGO) test --workspace
	MMTWIN_FUZZ_ROUNDS=3000 $(CARGO) test --workspace --test fuzz

setup:
	tools/setup.sh

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

# Figures beside the tools that mmtwin replaces; `make bench ARGS=--write-docs` puts them into docs/performance.md.
bench: setup build
	$(CARGO) bench -p mmtwin --bench throughput -- $(ARGS)
