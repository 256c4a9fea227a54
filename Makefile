# mmtwin: the two set-up commands are `make demo` and `make test`.
CARGO ?= cargo
BIN = target/release/mmtwin

.PHONY: demo test golden bench build setup lint lab lab-variants fidelity fidelity-refresh inject kills fuzz reference

build:
	$(CARGO) build --release --quiet --bin mmtwin

demo: build
	tools/demo.sh $(BIN)

# Installs what the tests compare against, then runs every check. Of the machine nothing changes but installed packages,
# each of which is printed; tracefs, where it is not mounted, is mounted for the tests alone.
test: setup lint
	tools/with-tracefs.sh $(CARGO) test --workspace
	MMTWIN_FUZZ_ROUNDS=3000 $(CARGO) test --workspace --test seeded
	$(MAKE) golden

# The examples' digests in an optimised build, for the usual and, where this CPU has it, a newer instruction set.
golden:
	$(CARGO) test --profile golden --package mmtwin-twin --test golden
	if grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then \
	  RUSTFLAGS="-C target-cpu=x86-64-v3" $(CARGO) test --profile golden --package mmtwin-twin --test golden \
	    --target-dir target/x86-64-v3; \
	else echo "skipped: digests for x86-64-v3: this CPU has no AVX2 and FMA"; fi

# Every system call by which an output is written fails once in turn: about an hour; `make test` does a few.
inject: setup
	MMTWIN_INJECT=all $(CARGO) test --package mmtwin --test inject -- --nocapture

# Recorders are killed and hung up on at random moments; `make test` does a few.
kills:
	MMTWIN_KILLS=100 MMTWIN_HANGUPS=50 $(CARGO) test --package mmtwin --test kills -- --nocapture

# Without the lab its tests say that they are skipped.
setup:
	tools/setup.sh
	-tools/lab.sh

# QEMU and Debian's kernels, for `mmtwin run --on lab`.
lab:
	tools/lab.sh

# Kernels with one published change undone, beside the same kernels with it, each some minutes to build.
lab-variants:
	tools/lab-variants.sh $(ARGS)

# docs/fidelity.md: the twin of today beside the stored runs of real kernels.
fidelity: build
	$(BIN) fidelity --write-docs

# Runs in the lab what is not stored yet; ARGS=--again runs everything and shows what changed.
fidelity-refresh: build lab
	$(BIN) fidelity --refresh --write-docs $(ARGS)
	git diff --stat -- docs/fidelity.md scenarios/fidelity

# The pages of docs/reference that are made from definitions: options, scenario keys, tables and findings.
reference: build
	$(BIN) reference docs/reference

# Looks for inputs that crash, hang or break an invariant, FUZZ_SECONDS for each target; FUZZ_DOCS=1 writes the table of
# docs/design/fuzzing.md. tools/fuzz.sh has the other settings.
fuzz:
	tools/fuzz.sh

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

# Figures beside the tools that mmtwin replaces; `make bench ARGS=--write-docs` puts them into docs/reference/performance.md.
bench: setup build
	tools/with-tracefs.sh $(CARGO) bench -p mmtwin --bench throughput -- $(ARGS)
