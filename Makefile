# One command for each habit. A bare `make` leaves the release binary at build/clink; `make help` lists the rest.
BUILD ?= build
JOBS  ?= $(shell nproc)
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/clink
DEPS  := build/deps
CMAKE := cmake -G Ninja -DCK_DEPS=$(CURDIR)/$(DEPS)
.DEFAULT_GOAL := release
.PHONY: release deps help clean fuzz demo test-deps asan tsan check test format tidy docs includes headers nm-globals faults biggest sim kills kill-matrix conformance bench bench-keys bench-hops bench-latency bench-parallel bench-kafka bench-cluster bench-state profile instructions

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

deps: ## Debian packages and pinned sources a build needs
	@tools/deps.sh $(CURDIR)/$(DEPS)

# The tests' own needs: clang for the second compiler, a Python with the oracles, the real data set.
test-deps:
	@tools/deps.sh --test $(CURDIR)/$(DEPS)
	@tools/venv.sh >/dev/null
	@tools/data.sh

release: deps ## the release binary at build/clink and build/libclink.so
	@$(CMAKE) -S . -B build -DCMAKE_BUILD_TYPE=Release >/dev/null
	@ninja -C build -j $(JOBS) $(shell [ -t 2 ] || echo --quiet) clink clink_shared

demo: release ## build, fetch a real data set, run a query on it
	@tools/demo.sh

# Each variant has its own folder: build (release), build-asan, build-tsan, build-clang.
asan: test-deps ## unit, corpus and SQL tests under AddressSanitizer and UBSan
	@$(CMAKE) -S . -B build-asan -DCMAKE_BUILD_TYPE=Debug -DCK_SANITIZE=address -DCK_DEBUG=ON >/dev/null
	@ninja -C build-asan -j $(JOBS) --quiet
	@cd build-asan && ctest --output-on-failure -j $(JOBS) $(CTEST)

tsan: test-deps ## the same under ThreadSanitizer
	@$(CMAKE) -S . -B build-tsan -DCMAKE_BUILD_TYPE=Debug -DCK_SANITIZE=thread >/dev/null
	@ninja -C build-tsan -j $(JOBS) --quiet
	@cd build-tsan && TSAN_OPTIONS=halt_on_error=1 ctest --output-on-failure -j $(JOBS) $(CTEST)

SECONDS ?= 60
fuzz: deps ## one target with libFuzzer: make fuzz T=frame [SECONDS=60]; finds go to build-fuzz/finds
	@test -f "fuzz/$(T).c" || { echo "make fuzz T=name, one of: $$(ls fuzz/*.c | sed 's|fuzz/||;s|\.c$$||' | grep -v replay_main | xargs)"; exit 2; }
	@$(CMAKE) -S . -B build-fuzz -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DCK_SANITIZE=fuzzer -DCK_DEBUG=ON >/dev/null
	@ninja -C build-fuzz -j $(JOBS) --quiet fuzz.$(T)
	@mkdir -p build-fuzz/finds/$(T) build-fuzz/corpus/$(T) fuzz/corpus/$(T)
	@cd build-fuzz && fuzz/fuzz.$(T) -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=1024 -artifact_prefix=finds/$(T)/ -print_final_stats=1 corpus/$(T) $(CURDIR)/fuzz/corpus/$(T)

check: deps ## unit tests and corpus replay, under a minute
	@$(CMAKE) -S . -B build -DCMAKE_BUILD_TYPE=Release >/dev/null
	@ninja -C build -j $(JOBS) --quiet
	@cd build && ctest --output-on-failure -j $(JOBS) -L unit $(CTEST)

test: test-deps ## everything CI runs
	@$(CMAKE) -S . -B build -DCMAKE_BUILD_TYPE=Release >/dev/null
	@ninja -C build -j $(JOBS) --quiet
	@cd build && ctest --output-on-failure -j $(JOBS) $(CTEST)

Q       ?= all
N       ?= 1000000
ENGINES ?= duckdb,ours,cpp,flink
bench: release ## NEXMark beside DuckDB and the peers, results compared first: make bench [Q=q17] [N=100000] [ENGINES=duckdb,ours]
	@python3 bench/bench.py -q $(Q) -n $(N) -e $(ENGINES)

bench-keys: release ## GROUP BY one key, 1,000 to 10,000,000 of them
	@bench/setup.sh keys keys10m duckdb cpp && python3 bench/run_keys.py -f k1k,k1m,k1ks,k1ms,k10m

bench-kafka: release test-deps ## NEXMark from topics of 12 partitions beside Flink and the C++ peer, results compared first: make bench-kafka [Q=q5] [N=100000] [ENGINES=ours]
	@bench/setup.sh data $(N) $(if $(findstring flink,$(ENGINES)),flink) $(if $(findstring cpp,$(ENGINES)),cpp)
	@$$(tools/venv.sh) bench/kafka.py -q $(Q) -n $(N) -e $(ENGINES) $(if $(filter all,$(Q)),--write)

bench-latency: release ## from the write of a row to its result, at half load; writes docs/latency.svg and the table
	@python3 bench/latency.py
bench-parallel: release ## wall time with two subtasks beside one, and what threads waited for a core
	@python3 bench/parallel.py
bench-hops: release ## instructions a row costs in a HOP of 1 to 1,000 slides
	@python3 bench/hops.py build/clink build/hops
bench-cluster: release ## a cluster: kill to new output, submit to first row, 1,000 subtasks deployed, shuffles
	@python3 bench/cluster.py
bench-state: release ## barrier pause, snapshot rate, deltas, restore, backends, and q5 and q17 with checkpoints beside none
	@$(CMAKE) -S . -B build -DCK_BENCH=ON >/dev/null && ninja -C build -j $(JOBS) --quiet checkpoint_bench
	@python3 bench/state.py

profile: deps ## a flame graph of one query at build-profile/<q>.svg: make profile Q=q17 [N=1000000]
	@$(CMAKE) -S . -B build-profile -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS=-fno-omit-frame-pointer >/dev/null
	@ninja -C build-profile -j $(JOBS) --quiet clink
	@bench/profile.sh $(if $(filter all,$(Q)),q17,$(Q)) $(N)

instructions: release ## counts the instructions of five queries and writes bench/instructions.json anew
	@tools/deps.sh --test $(CURDIR)/$(DEPS)
	@python3 bench/instructions.py build/clink build/instructions $$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' build/CMakeCache.txt) --update

SEEDS ?= 2000
sim: deps ## whole jobs on a simulated machine: make sim [SEEDS=2000], with crashes at every fault point
	@$(CMAKE) -S . -B build -DCMAKE_BUILD_TYPE=Release >/dev/null
	@ninja -C build -j $(JOBS) --quiet sim sql_sim cluster_sim
	@tools/sim.sh $(SEEDS) $(JOBS)

kill-matrix: release test-deps ## queries x fault points x alignment x parallelism, compared with undisturbed runs: make kill-matrix [JOBS=2] [QUERY=top] [POINT=commit.before] [BACKEND=file|rocksdb|changelog|changelog-inside|changelog-rocksdb] [SHARD=1/4] [LOG=file]
	@$$(tools/venv.sh) tests/system/kill_matrix.py --jobs $(JOBS) $(if $(QUERY),--query $(QUERY)) $(if $(POINT),--point $(POINT)) $(if $(BACKEND),--backend $(BACKEND)) $(if $(SHARD),--shard $(SHARD)) $(if $(LOG),--log $(LOG))

.PHONY: cluster-matrix
cluster-matrix: release test-deps ## jobs on a real cluster x what happens to processes, network and disk, compared with undisturbed runs: make cluster-matrix [JOBS=2] [QUERY=window] [TROUBLE=stop-leader|die] [SEED=1] [SHARD=1/4] [LOG=file]
	@$$(tools/venv.sh) tests/system/cluster_matrix.py --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(QUERY),--query $(QUERY)) $(if $(TROUBLE),--trouble $(TROUBLE)) $(if $(SHARD),--shard $(SHARD)) $(if $(LOG),--log $(LOG))

conformance: release test-deps ## every transactional sink stopped at every step of its commits; writes the matrix into docs/connectors.md: make conformance [SINK=file] [CELL=zombie]
	@$$(tools/venv.sh) tests/system/conformance.py $(if $(SINK),--sink $(SINK)) $(if $(CELL),--cell $(CELL)) $(if $(SINK)$(CELL),,--write)

kills: release test-deps ## the binary killed at every fault point, at several moments, and started again
	@CLINK_FAULTS=all tools/pytest.sh tests/system/test_faults.py

N    ?= 1000
SEED ?= 1
.PHONY: differential slt leaks nexmark
differential: release test-deps ## random queries through clink and DuckDB: make differential [N=1000] [SEED=1]
	@$$(tools/venv.sh) tests/differential/differential.py --n $(N) --seed $(SEED) --every 100

leaks: release test-deps ## 2,000 jobs submitted and cancelled: coordinator and worker keep neither memory nor descriptors of them
	@CLINK_LONG=1 tools/pytest.sh tests/system/test_isolation.py -k leave_neither

nexmark: release test-deps ## NEXMark's queries against DuckDB: every parallelism and batch size, from files and the connector, after kills
	@CLINK_LONG=1 tools/pytest.sh tests/system/test_nexmark.py

DIR ?= tests/sql
slt: release test-deps ## sqllogictest files through clink: make slt [DIR=tests/sql]
	@$$(tools/venv.sh) tests/slt/slt.py $(DIR)

format: ## clang-format every source in place
	@git ls-files '*.c' '*.h' | xargs clang-format -i

tidy: ## clang-tidy's analyzer over src/
	@$(CMAKE) -S . -B build-tidy -DCMAKE_C_COMPILER=clang >/dev/null && ninja -C build-tidy --quiet clink_core
	@git ls-files 'src/*.c' | xargs -P $(JOBS) -n 8 clang-tidy --quiet -p build-tidy

docs: deps ## docs/functions.md from the function tables
	@$(CMAKE) -S . -B build -DCMAKE_BUILD_TYPE=Release >/dev/null
	@ninja -C build -j $(JOBS) --quiet functions_doc
	@build/functions_doc > docs/functions.md

includes: ## rooms that include what they may not
	@python3 tools/includes.py

headers: deps ## every header compiles alone, the public ones also as C++
	@tools/headers.sh

nm-globals: release ## writable globals in the release library (there should be none)
	@tools/nm_globals.sh build/libclink_core.a

faults: ## every declared fault point is placed in the code
	@python3 tools/faults.py

.PHONY: messages
messages: ## every message that refuses a script has a golden
	@python3 tools/messages.py

biggest: ## longest files and functions, a report
	@python3 tools/biggest.py

clean: ## remove all build folders
	@rm -rf build build-*
