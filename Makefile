# mmtwin: the two set-up commands are `make demo` and `make test`.
CARGO ?= cargo
BIN = target/release/mmtwin

.PHONY: demo test bench build setup lint fuzz

build:
	$(CARGO) build --release --quiet --bin mmtwin

demo: build
	tools/demo.sh $(BIN)

# Installs what the tests compare against, then runs every check.
test: setup lint
	$(CARGO) test --workspace
	tools/fuzz.sh 20

setup:
	tools/setup.sh

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

bench: build setup
	tools/bench.sh $(BIN)
