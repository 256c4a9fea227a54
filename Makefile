# mmtwin: the two set-up commands are `make demo` and `make test`.
CARGO ?= cargo
BIN = target/release/mmtwin

STATIC_TARGET = x86_64-unknown-linux-gnu

.PHONY: demo test compile test-release golden golden-v3 bench build static dist setup lint lab lab-variants fidelity \
  fidelity-refresh fidelity-again lab-again verdicts-again fleet-again inject kills fuzz reference web web-again \
  flight-again top-cost exports-again scrapes sweep-again python

build:
	$(CARGO) build --release --quiet --bin mmtwin

# With a binary in which nothing is optimised: it compiles in a fifth of the time of a release.
demo: export CARGO_INCREMENTAL = 0
demo:
	$(CARGO) build --quiet --profile demo --bin mmtwin
	tools/demo.sh target/demo/mmtwin

# A program that needs no library of the machine it runs on. With glibc: its allocator is faster than that of musl, and
# there is nothing to install.
static:
	RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --release --quiet --bin mmtwin --target $(STATIC_TARGET) \
	  --target-dir target/static

# A .deb and a .tar.zst in target/dist, with man pages and completions.
dist: static
	tools/dist.sh target/static/$(STATIC_TARGET)/release/mmtwin

# Installs what the tests compare against, then checks the formatting and runs all tests. Of the machine nothing changes
# but installed packages, each of which is printed; tracefs, where it is not mounted, is mounted for the tests alone.
# Incremental compilation saves nothing in a fresh tree, and what it compiles runs slower.
test: export CARGO_INCREMENTAL = 0
test:
	$(CARGO) fmt --all -- --check
	$(MAKE) --no-print-directory -j 2 setup compile
	MMTWIN_FUZZ_ROUNDS=2000 tools/with-tracefs.sh $(CARGO) test --workspace

# The agent of the lab is built at the same time: neither keeps two cores busy all the time.
compile:
	$(CARGO) test --workspace --no-run --quiet

# Before a release: what `make test` does a part of, or not at all. `kills` and `inject` take longest.
test-release: golden golden-v3 fidelity-again lab-again verdicts-again

# The examples' digests in a build without assertions, optimised as a release; in `make test` they are compared in one
# with assertions.
golden:
	$(CARGO) test --profile golden --package mmtwin-twin --test golden

# The same for a newer instruction set, where this CPU has it.
golden-v3:
	if grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then \
	  RUSTFLAGS="-C target-cpu=x86-64-v3" $(CARGO) test --profile golden --package mmtwin-twin --test golden \
	    --target-dir target/x86-64-v3; \
	else echo "skipped: digests for x86-64-v3: this CPU has no AVX2 and FMA"; fi

# Every system call by which an output is written fails once in turn: about an hour; `make test` does a few.
inject: setup
	MMTWIN_INJECT=all $(CARGO) test --package mmtwin-cli --test inject -- --nocapture

# Recorders are killed and hung up on at random moments; `make test` does a few.
kills:
	MMTWIN_KILLS=100 MMTWIN_HANGUPS=50 $(CARGO) test --package mmtwin-cli --test kills -- --nocapture

# The share of a CPU that `mmtwin top` takes, without and with 1,000 idle cgroups: a minute each.
top-cost: build
	MMTWIN_BINARY=$(CURDIR)/$(BIN) tools/with-tracefs.sh $(CARGO) test --package mmtwin-cli --test cli top_cost -- \
	  --ignored --nocapture

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

# docs/fidelity.md and docs/fidelity: the twin of today beside the stored runs of real kernels.
fidelity: build
	$(BIN) fidelity test --write-docs
	$(BIN) fidelity --write-docs

# Runs in the lab what is not stored yet; ARGS=--again runs everything and shows what changed.
fidelity-refresh: build lab
	$(BIN) fidelity --refresh --write-docs $(ARGS)
	git diff --stat -- docs/fidelity.md docs/fidelity scenarios/fidelity

# Tests with guests that take long: runs that are equal byte by byte, disks of any latency, modules that come and go, the
# older kernel's purge.
lab-again: setup
	$(CARGO) test --package mmtwin-lab -- --ignored

# The commands that findings print, of every recording of tests/verdicts; `make test` runs those of a quarter.
verdicts-again:
	MMTWIN_VERDICTS=all $(CARGO) test --package mmtwin-cli --test cli commands_that_findings_print_work

# A report on 1,000 recordings: its time and memory.
fleet-again:
	$(CARGO) build --release --quiet --bin mmtwin
	MMTWIN_BIN=$(CURDIR)/target/release/mmtwin $(CARGO) test --package mmtwin-cli --test cli a_thousand_recordings -- --ignored --nocapture

# The flight recorder at 100,000 events per second: size, CPU time, losses, time of a recording. An hour, or FLIGHT_SECONDS.
flight-again: build
	tools/flight.sh $(BIN)
# What is exported, read with the Python packages of those who defined the formats; these are put into target/python.
exports-again:
	tools/python.sh
	$(CARGO) test --package mmtwin-cli --test cli -- --ignored --nocapture reads_what_is_written

# A thousand scrapes of 5,000 series: the memory of the endpoint does not grow.
scrapes:
	$(CARGO) test --package mmtwin-cli --bin mmtwin -- --ignored --nocapture a_thousand_scrapes
# 1,000 runs on one thread and on two: CPU time of a run, of the thread that schedules, and the throughput.
sweep-again:
	$(CARGO) build --release --quiet --bin mmtwin
	MMTWIN_BIN=$(CURDIR)/target/release/mmtwin $(CARGO) test --package mmtwin-cli --test cli a_thousand_runs -- --ignored --nocapture

# The Python package: its wheel, tests, examples and notebooks, and sweeps on a Ray cluster of three node processes.
python:
	tools/python-package.sh $(ARGS)

# Every cell judged again, and a run of each again in the lab: some 15 s each. `make test` judges a third and runs one.
fidelity-again: setup
	MMTWIN_FIDELITY=all $(CARGO) test --package mmtwin-validate --test fidelity

# The script and the style of pages, out of crates/report/web/src with the pinned tools: needs Node.
web:
	cd crates/report/web && npm ci && npm run build

# The committed script and style are those of their sources; how fast a page of 2 M events is written, drawn and moved.
web-again:
	$(CARGO) build --release --quiet --bin mmtwin
	MMTWIN_BIN=$(CURDIR)/target/release/mmtwin $(CARGO) test --package mmtwin-cli --test cli html:: -- --ignored --nocapture

# The pages of docs/reference that are made from definitions: options, scenario keys, tables and findings.
reference: build
	$(BIN) reference docs/reference

# Looks for inputs that crash, hang or break an invariant, FUZZ_SECONDS for each target; FUZZ_DOCS=1 writes the table of
# docs/design/fuzzing.md. tools/fuzz.sh has the other settings.
fuzz:
	tools/fuzz.sh

lint:
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

# Figures beside the tools that mmtwin replaces; `make bench ARGS=--write-docs` puts them into docs/reference/performance.md.
bench: setup build
	tools/with-tracefs.sh $(CARGO) bench -p mmtwin-cli --bench throughput -- $(ARGS)
