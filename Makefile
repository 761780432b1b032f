# evenkeel: one non-recursive Makefile.
#
#   make run     install what is missing, build, and watch this machine live (DURATION=20s to stop by itself)
#   make demo    install what is missing, build, and serve a made-up cluster of 200 nodes (NODES=50, DURATION=20s)
#   make lab     build Kubernetes 1.37 once, and run a cluster whose pods only pretend to work (NODES=20, DURATION=20s)
#   make check   install what is missing, build, and run the tests, four programs at a time (JOBS=2)
#   make bench-placement   place bursts of pods with and without evenkeel, on that cluster
#   make check-faults   run the tests that cause failures: kills, cuts, restarts, shortages
#   make check-vm   run the tests of the samplers on several kernels, in virtual machines (KERNELS="5.10 7", ARCH=arm64)
#   make soak    build the program that keeps an aggregator under load for hours
#   make check-kube   build a Kubernetes control plane, once, and run the tests on it (KUBE=1.37 with Go 1.26, KUBE=1.20 without)
#   make check-node   run the images in pods of a real node, made of a kubelet and containerd on this machine (KUBE=1.37, KUBE=1.20)
#   make check-node-vm   the same in a virtual machine with cgroup v2 alone, Kubernetes 1.37 only
#   make check-packages   build Debian packages, install them into a fresh system and boot it in a virtual machine
#   make deb     build the Debian packages into build/deb (ARCH=arm64)
#   make manifests   render packaging/kubernetes/install.yaml, or build/manifests with the images of a registry (IMAGE_REPO=registry.example/evenkeel TAG=0.1.0)
#   make image   make container images of the programs into build/image (ARCH="amd64 arm64" with an index of both)
#   make check-image   check them: what is in them, what they may not need, the same bytes from another folder
#   make check-page   use the web page in Debian's Chromium, on simulated clusters and this machine
#   make check-monitoring   let a real Prometheus scrape an aggregator, and try rules and dashboard on it
#   make coverage   lines and branch sides that the tests run, by folder
#   make mutants    change decisions of the source one at a time, and list those that no test guards (COUNT=30, FILES=)
#   make         build the programs into build/bin
#
# CC=clang and SAN=address,undefined choose compiler and sanitizers, ARCH=arm64 (amd64) builds for another architecture, by gcc
# without sanitizers; each combination has a build directory of its own below build/, so switching never mixes objects.

OWN_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(shell uname -m)))
ARCH    ?= $(OWN_ARCH)
$(if $(filter-out amd64 arm64 $(OWN_ARCH),$(ARCH)),$(error ARCH is $(ARCH): amd64 or arm64 is expected))
# Another architecture than this machine's, or nothing; `packaging/deps arm64` installs what it needs.
CROSS   := $(filter-out $(OWN_ARCH),$(ARCH))
TRIPLET  = $(if $(CROSS),$(patsubst arm64,aarch64,$(patsubst amd64,x86_64,$(CROSS)))-linux-gnu)
SYSROOT := $(or $(EVENKEEL_CACHE),$(HOME)/.cache/evenkeel)/sysroot/$(CROSS)

CC      ?= gcc
ifeq ($(origin CC),default)
CC      := $(if $(CROSS),$(TRIPLET)-)gcc
endif
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
SAN     ?=
COVERAGE ?=
WERROR  ?=
V       ?=
VERSION := 0.1.0

B       := build
# Objects live apart for each compiler and sanitizer; the default build is also what build/bin holds.
CCNAME  := $(notdir $(firstword $(CC)))
comma   := ,
space   := $() $()
VARIANT := $(if $(CROSS),-$(CROSS))$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(COVERAGE),-coverage)$(if $(filter gcc cc $(TRIPLET)-gcc,$(CCNAME)),,-$(CCNAME))
O       := $(B)/obj$(VARIANT)
BIN     := $(B)/bin$(VARIANT)
TB      := $(B)/tests$(VARIANT)
GEN     := $(B)/gen

Q       := $(if $(V),,@)
say      = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2);)

WARN    := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wundef -Wformat=2 \
           $(if $(WERROR)$(CI),-Werror)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Counters in a mapped file: what a killed or confined process has counted is there, too. Clang only.
COVERFLAGS := $(if $(COVERAGE),-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation -Qunused-arguments)
# Debian 12's gcc 12.2 for arm64 crashes when it vectorizes a conditional sum of doubles (vect_transform_reduction).
ARCHFLAGS := $(if $(filter arm64,$(ARCH)),-fno-tree-vectorize) $(if $(CROSS),--sysroot=$(SYSROOT))
# With sanitizers, which name lines in their reports, debuggers are not needed.
CFLAGS  ?= $(if $(SAN),-O1 -g1,-O2 -g)
EK_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DEVENKEEL_VERSION='"$(VERSION)"' -I. -I$(GEN) -ffp-contract=off -pthread \
           -fstack-protector-strong $(REPRODUCIBLE) $(WARN) $(SANFLAGS) $(COVERFLAGS) $(ARCHFLAGS) $(PKG_CFLAGS)
# What is built is the same wherever the tree lies.
REPRODUCIBLE := -ffile-prefix-map=$(CURDIR)=.

pkgenv   = $(if $(CROSS),PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(TRIPLET)/pkgconfig)
pkg      = $(shell $(pkgenv) pkg-config --cflags $(1) 2>/dev/null)
pkglibs  = $(shell $(pkgenv) pkg-config --libs $(1) 2>/dev/null)
PKGS    := libbpf libelf zlib nanomsg libsodium libprotobuf-c libuv libmicrohttpd libcurl gnutls libcjson yaml-0.1 \
           sqlite3 cmocka libseccomp libcap-ng
PKG_CFLAGS := $(call pkg,$(PKGS))

AGENT_LIBS      = $(call pkglibs,libbpf libelf zlib nanomsg libsodium yaml-0.1 libseccomp libcap-ng) -lm
AGGREGATOR_LIBS = $(call pkglibs,libuv libmicrohttpd libcurl gnutls libsodium libcjson \
                  yaml-0.1 sqlite3 zlib libseccomp) $(if $(SAN),,$(call pkglibs,jemalloc)) -lm
# The command line, and the actuator.
CLI_LIBS        = $(call pkglibs,libcurl gnutls libsodium libcjson yaml-0.1 zlib) -lm
# LLVM's linker, where it is there, takes half the time, and there are hundreds of test programs.
TEST_LINKER    := $(if $(CROSS),,$(if $(shell command -v ld.lld),-fuse-ld=lld))
TEST_LIBS       = $(TEST_LINKER) $(call pkglibs,cmocka libuv libmicrohttpd libcurl gnutls libcjson libbpf libelf zlib nanomsg libsodium \
                  libprotobuf-c yaml-0.1 sqlite3 libseccomp libcap-ng) -lm -ldl

# --- what is built from what -------------------------------------------------------------------------------------

SHARED_C     := $(wildcard shared/*.c)
AGENT_C      := $(filter-out agent/main.c,$(wildcard agent/*.c))
AGGREGATOR_C := $(wildcard aggregator/model/*.c aggregator/verify/*.c aggregator/state/*.c aggregator/policy/*.c aggregator/policy/*/*.c aggregator/planner/*.c aggregator/api/*.c \
                aggregator/edge/*.c aggregator/edge/*/*.c) \
                $(filter-out aggregator/main.c aggregator/actuator/main.c,$(wildcard aggregator/*.c aggregator/actuator/*.c))
CLI_C        := $(filter-out aggregator/cli/main.c,$(wildcard aggregator/cli/*.c))
FLEET_C      := $(wildcard tests/fleet/*.c)
# What stands in for a part of the agent is linked into the fleet alone.
FLEET_OWN_C  := tests/fleet/main.c tests/fleet/worker.c tests/fleet/plain_socket.c
SOAK_C       := $(filter-out tests/soak/main.c,$(wildcard tests/soak/*.c))
PLACEMENT_C  := $(filter-out tests/bench_placement/main.c,$(wildcard tests/bench_placement/*.c))
TESTLIB_C    := $(wildcard tests/*.c) $(filter-out $(FLEET_OWN_C),$(FLEET_C)) $(SOAK_C) $(PLACEMENT_C)
UNIT_C       := $(wildcard tests/unit/*.c)
INTEG_C      := $(wildcard tests/integration/*.c)
FAULTS_C     := $(wildcard tests/faults/*.c)
BENCH_C      := $(wildcard tests/bench/*.c)
FUZZ_C       := $(filter-out tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c))
CONF_C       := $(wildcard tests/conformance/*.c)
VM_C         := $(wildcard tests/vm/*.c)
KUBE_C       := $(wildcard tests/kube/*.c)
NODE_C       := $(wildcard tests/node/*.c)
PEERS_C      := $(wildcard tests/peers/*.c)
MONITORING_C := $(wildcard tests/monitoring/*.c)

PROTO_C := $(GEN)/shared/body.pb-c.c
PAGE_C  := $(GEN)/aggregator/page.c
PAGE    := $(shell find aggregator/page -type f)
BPF_C   := $(wildcard bpf/*.bpf.c)
BPF_O   := $(patsubst bpf/%.bpf.c,$(B)/bpf/%.bpf.o,$(BPF_C))
SKEL    := $(patsubst bpf/%.bpf.c,$(GEN)/bpf/%.skel.h,$(BPF_C))
# Scripts for shells, as texts that C includes.
SCRIPT  := $(wildcard shared/complete.*) aggregator/cli/drain.sh
SCRIPT_H := $(patsubst %,$(GEN)/%.h,$(SCRIPT))

obj = $(patsubst %.c,$(O)/%.o,$(patsubst $(GEN)/%.c,$(O)/gen/%.o,$(1)))

SHARED_A     := $(O)/libshared.a
AGENT_A      := $(O)/libagent.a
AGGREGATOR_A := $(O)/libaggregator.a
CLI_A        := $(O)/libcli.a
TESTLIB_A    := $(O)/libtest.a
# Archives in link order: each may use those after it.
ALL_A        := $(TESTLIB_A) $(AGENT_A) $(CLI_A) $(AGGREGATOR_A) $(SHARED_A)

PROGRAMS := $(BIN)/evenkeel-agent $(BIN)/evenkeel-aggregator $(BIN)/evenkeel-actuator $(BIN)/evenkeel
UNIT     := $(patsubst tests/unit/%.c,$(TB)/unit/%,$(UNIT_C))
INTEG    := $(patsubst tests/integration/%.c,$(TB)/integration/%,$(INTEG_C))
FAULTS   := $(patsubst tests/faults/%.c,$(TB)/faults/%,$(FAULTS_C))
BENCH    := $(patsubst tests/bench/%.c,$(TB)/bench/%,$(BENCH_C))
REPLAY   := $(patsubst tests/fuzz/%.c,$(TB)/fuzz/%,$(FUZZ_C))
VM       := $(patsubst tests/vm/%.c,$(TB)/vm/%,$(VM_C))
KUBE_TESTS := $(patsubst tests/kube/%.c,$(TB)/kube/%,$(KUBE_C))
# The virtual machine's: one that samples by T0.
NODE_KERNEL := 6.18
NODE     := $(patsubst tests/node/%.c,$(TB)/node/%,$(NODE_C))
MONITORING := $(patsubst tests/monitoring/%.c,$(TB)/monitoring/%,$(MONITORING_C))
CONF     := $(if $(CONF_C),$(TB)/conformance)
FLEET    := $(TB)/fleet
MUTATE   := $(TB)/mutate
BENCH_TABLE := $(TB)/bench_table
BENCH_PLACEMENT := $(TB)/bench_placement
LAB      := $(TB)/lab
SOAK     := $(TB)/soak
PEERS    := $(TB)/peers
# What programs are loaded with whose sockets and memory are to fail.
SEAM     := $(TB)/seam.so

.PHONY: all checked tests everything fleet soak benches demo lab deps deps-lint deps-vm deps-bench run check check-built check-units check-integration check-vm check-vm-built
.PHONY: check-faults check-faults-built deps-kube check-kube check-kube-built check-kube-oldest deps-node check-node check-node-built
.PHONY: deps-node-vm check-node-vm check-node-vm-built
.PHONY: documents deps-deb deb deps-packages check-packages
.PHONY: deps-image image check-image manifests
.PHONY: coverage coverage-built mutants mutants-built
.PHONY: deps-page check-page check-page-built page-vendor
.PHONY: deps-monitoring check-monitoring check-monitoring-built
.PHONY: bench bench-built bench-peers bench-peers-built bench-placement bench-placement-built fuzz fuzz-built lint lint-built clean install install-config
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

all: $(PROGRAMS)
# What `make check` runs.
checked: all $(UNIT) $(INTEG) $(REPLAY) $(CONF) $(FLEET)
tests: $(UNIT) $(INTEG) $(VM) $(KUBE_TESTS) $(NODE) $(MONITORING) $(REPLAY) $(CONF) $(FLEET) $(LAB)
# All that the steps of .ci/run need, so that those that run at the same time build nothing.
everything: all tests benches $(FAULTS) $(SEAM) $(BPF_O) $(B)/tests/node/guest.tar
fleet: $(FLEET)
soak: all $(FLEET) $(SOAK)
benches: $(BENCH) $(BENCH_TABLE) $(BENCH_PLACEMENT) $(SOAK)

$(SHARED_A): $(call obj,$(SHARED_C))
$(AGENT_A): $(call obj,$(AGENT_C))
$(AGGREGATOR_A): $(call obj,$(AGGREGATOR_C) $(PAGE_C))
$(CLI_A): $(call obj,$(CLI_C))
$(TESTLIB_A): $(call obj,$(TESTLIB_C) $(PROTO_C))

$(O)/%.a:
	$(call say,AR,$@)rm -f $@ && ar rcsD $@ $^

define link
@mkdir -p $(@D)
$(call say,LD,$@)$(CC) $(EK_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(MUTANT) $^ $(1)
endef

$(BIN)/evenkeel-agent: $(O)/agent/main.o $(AGENT_A) $(SHARED_A)
	$(call link,$(AGENT_LIBS))

$(BIN)/evenkeel-aggregator: $(O)/aggregator/main.o $(AGGREGATOR_A) $(SHARED_A)
	$(call link,$(AGGREGATOR_LIBS))

$(BIN)/evenkeel-actuator: $(O)/aggregator/actuator/main.o $(AGGREGATOR_A) $(SHARED_A)
	$(call link,$(CLI_LIBS))

# What the CLI computes offline is the aggregator's; of its edges only requests to an API server are linked.
$(BIN)/evenkeel: $(O)/aggregator/cli/main.o $(CLI_A) $(AGGREGATOR_A) $(SHARED_A)
	$(call link,$(CLI_LIBS))

# --- objects -----------------------------------------------------------------------------------------------------

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(EK_CFLAGS) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

$(O)/gen/%.o: $(GEN)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(EK_CFLAGS) $(CFLAGS) $(CPPFLAGS) -Wno-shadow -MMD -MP -c -o $@ $<

# The sampler embeds the BPF objects through their skeletons.
$(O)/agent/sampler_bpf_walk.o: | $(SKEL)

$(O)/shared/cli_spec.o $(O)/aggregator/cli/drain_commands.o: | $(SCRIPT_H)
$(SCRIPT_H): $(GEN)/%.h: %
	@mkdir -p $(@D)
	$(call say,TEXT,$<)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< >$@

# The library reads bodies in tests only, beside shared/message.c.
$(O)/tests/unit/api_shared_body.o $(O)/tests/unit/shared_enrolment.o $(O)/tests/unit/aggregator_reservations_message.o $(O)/tests/unit/plan_peer.o $(O)/tests/fuzz/body.o: | $(PROTO_C)
$(GEN)/shared/body.pb-c.c: shared/body.proto
	@mkdir -p $(@D)
	$(call say,PROTOC,$<)protoc-c --c_out=$(GEN) $<

# The files of the web page, compressed.
$(PAGE_C): packaging/embed $(PAGE)
	@mkdir -p $(@D)
	$(call say,EMBED,aggregator/page)packaging/embed aggregator/page >$@

# Types hold names of files: what was built with other flags, or elsewhere, is not taken over.
$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(BPF_C) $(wildcard bpf/*.h) Makefile
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) -target bpf -O2 -g -Wall -Wextra -Werror -std=gnu11 \
		$(REPRODUCIBLE) -I. $(call pkg,libbpf) -c -o $(@:.o=.full.o) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.o=.full.o)

$(GEN)/bpf/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(call say,SKEL,$@){ echo '/* NOLINTBEGIN */'; $(BPFTOOL) gen skeleton $< name $*_bpf; \
		echo '/* NOLINTEND */'; } > $@

# --- tests -------------------------------------------------------------------------------------------------------

# tests/unit/verify.c counts the members that the checker of plans reads.
$(TB)/unit/verify: TEST_LIBS += -Wl,--wrap=cJSON_GetObjectItemCaseSensitive
# tests/unit/api_place_cache.c counts the cores that are built and freed.
$(TB)/unit/api_place_cache: TEST_LIBS += -Wl,--wrap=place_new,--wrap=place_free
# See tests/reservations_watch.h.
RESERVATIONS_WATCHED := $(TB)/unit/aggregator_reservations $(TB)/unit/api_extender $(TB)/unit/api_fit $(TB)/integration/extender $(TB)/bench/extender
$(RESERVATIONS_WATCHED): TEST_LIBS += -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock
# LLVM's linker takes no archive member for a wrapped function that a sanitizer names weakly.
$(RESERVATIONS_WATCHED): TEST_LINKER :=

$(TB)/unit/%: $(O)/tests/unit/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(TB)/integration/%: $(O)/tests/integration/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
# The agent has a publisher, too.
$(TB)/integration/engine_loop: $(O)/tests/integration/engine_loop.o $(filter-out $(AGENT_A),$(ALL_A))
	$(call link,$(TEST_LIBS))
$(TB)/faults/%: $(O)/tests/faults/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(TB)/bench/%: $(O)/tests/bench/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(TB)/vm/%: $(O)/tests/vm/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(TB)/kube/%: $(O)/tests/kube/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(TB)/node/%: $(O)/tests/node/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
# The one image a node cannot do without, and what pods of tests run: static, and without sanitizers.
$(B)/tests/node/guest.tar: tests/node/guest/main.c tests/node/image
	@mkdir -p $(@D)
	$(call say,IMAGE,$@)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -static -o $(@:.tar=) $< && \
		tests/node/image $(@:.tar=) $@
$(TB)/monitoring/%: $(O)/tests/monitoring/%.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(TB)/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/replay.o $(ALL_A)
	$(call link,$(TEST_LIBS))
# Its senders take their acks from tests/fleet/ack_trouble.c; tests/fleet/agent_sim.c counts what rings merge.
$(FLEET): $(call obj,$(FLEET_OWN_C)) $(ALL_A)
	$(call link,-Wl$(comma)--wrap=sender_socket_receive$(comma)--wrap=interval_merge $(TEST_LIBS))
$(SEAM): tests/seam/preload.c tests/seam/control.h tests/seam.h
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(filter-out $(SANFLAGS),$(EK_CFLAGS)) $(if $(SAN),-DSEAM_SANITIZED) $(CFLAGS) -fno-builtin -fPIC -shared -o $@ $< -ldl
$(SOAK): $(O)/tests/soak/main.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(PEERS): $(call obj,$(PEERS_C)) $(ALL_A)
	$(call link,$(TEST_LIBS))
$(LAB): $(O)/tests/lab/main.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(BENCH_PLACEMENT): $(O)/tests/bench_placement/main.o $(ALL_A)
	$(call link,$(TEST_LIBS))
$(BENCH_TABLE): $(call obj,$(wildcard tests/bench_table/*.c)) $(TESTLIB_A) $(SHARED_A)
	$(call link,$(TEST_LIBS))
$(MUTATE): $(O)/tests/mutants/mutate.o $(SHARED_A)
	$(call link,$(call pkglibs,libsodium))
$(TB)/conformance: $(call obj,$(CONF_C)) $(ALL_A)
	$(call link,$(TEST_LIBS))

FUZZ_NAMES  := $(patsubst tests/fuzz/%.c,%,$(FUZZ_C))
# Quiet unless V=1, and -j by itself unless the caller chose.
PARALLEL    := $(if $(V),,--silent) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	@packaging/deps $(CROSS)
deps-lint:
	@packaging/deps lint
deps-vm:
	@packaging/deps $(CROSS) vm
deps-kube:
	@packaging/deps kube$(addprefix -,$(KUBE))
deps-node:
	@packaging/deps node kube$(addprefix -,$(KUBE))
deps-node-vm:
	@packaging/deps node vm kube-1.37
deps-deb:
	@packaging/deps $(CROSS) deb
deps-packages:
	@packaging/deps packages
deps-image:
	@packaging/deps $(CROSS) image
deps-monitoring:
	@packaging/deps monitoring
deps-page:
	@packaging/deps page
deps-bench:
	@packaging/deps bench
	@packaging/peer

# Packages first, then a new make that sees them.
check: deps
	+@$(MAKE) --no-print-directory $(PARALLEL) check-built
run: deps
	+@$(MAKE) --no-print-directory $(PARALLEL) all
	@packaging/run
demo: deps
	+@$(MAKE) --no-print-directory $(PARALLEL) all fleet
	@BIN=$(BIN) TB=$(TB) tests/demo

# Needs Go 1.26, with which Kubernetes 1.37 and kwok are built the first time.
lab: deps-kube
	+@$(MAKE) --no-print-directory $(PARALLEL) all $(LAB)
	@programs=$$(tests/kube/build 1.37) && EVENKEEL_KUBE=$$programs BIN=$(BIN) $(LAB)

# Those that measure for long wait with the faults, so that a newcomer waits for minutes only; sanitizers see them here.
LONG_INTEG := $(filter $(patsubst %,$(TB)/integration/%,advice bursty confined_agent drain_real_use),$(INTEG))
CHECK_UNITS = $(UNIT) $(subst $(space),$(comma),tests/btf/check $(BPF_O)) tests/docs/check \
	$(foreach f,$(FUZZ_NAMES),$(TB)/fuzz/$(f)$(comma)tests/fuzz/corpus/$(f)) \
	$(if $(CONF),$(CONF)$(comma)tests/vectors$(comma)tests/conformance/cases)
# advice and bursty burn a minute of CPU for the kernel to measure; ground_truth has the same programs run the same code.
CHECK_INTEG = $(filter-out $(if $(SAN),$(TB)/integration/advice $(TB)/integration/bursty,$(LONG_INTEG)),$(INTEG))
# JOBS programs run side by side: most of them wait. A program that compares real time or CPU use, or loads the whole machine, runs alone.
JOBS  ?= 4
ALONE := $(patsubst %,$(TB)/integration/%,access advice bursty confined_agent drain_real_use ground_truth http_flood \
	kube_peer many_cgroups once)
# Of the others, programs that read the kernel or a clock, and scripts, run always. PASSED=DIR: the rest only if it has not
# passed before.
PASSED ?=
ALWAYS := tests/% $(TB)/unit/agent_% $(patsubst %,$(TB)/integration/%,access_limits actuator_lease actuator_program \
	cgroup_namespace confine% engine_loop handshakes healthy ingest_peers killed_tests kube_follow kube_writes layouts planner sampler% short_lives unreadable) $(TB)/faults/sampling
SHARED  = $(filter-out $(ALONE),$(1))
run_tests = @ARCH=$(ARCH) $(if $(CROSS),TEST_TIMEOUT=1500 TEST_TIME_SCALE=4) TB=$(TB) BIN=$(BIN) TEST_PASSED=$(PASSED) packaging/emulate tests/run -j $(JOBS) $(B)/log$(VARIANT) $(filter-out $(ALWAYS),$(SHARED)) \
	--always $(filter $(ALWAYS),$(SHARED)) --alone $(filter $(ALONE),$(1))
check-built: checked $(BPF_O)
	$(call run_tests,$(CHECK_UNITS) $(CHECK_INTEG))
# The two halves of check: what computes, and what waits for processes and the network.
check-units: checked $(BPF_O)
	$(call run_tests,$(CHECK_UNITS))
check-integration: checked
	$(call run_tests,$(CHECK_INTEG))

# Processes that are killed, networks that are cut, names and budgets that change: it takes waiting.
check-faults: deps
	+@$(MAKE) --no-print-directory $(PARALLEL) check-faults-built
check-faults-built: all $(FAULTS) $(FLEET) $(SEAM) $(LONG_INTEG)
	@TB=$(TB) BIN=$(BIN) TEST_PASSED=$(PASSED) tests/run -j $(JOBS) $(B)/log$(VARIANT) $(filter-out $(ALWAYS),$(FAULTS)) \
		--always $(filter $(ALWAYS),$(FAULTS)) --alone $(LONG_INTEG)

# Lines and branch sides that the tests run, by folder.
coverage: deps
	+@$(MAKE) --no-print-directory $(PARALLEL) CC=$(CLANG) COVERAGE=1 CFLAGS=-O1 coverage-built
coverage-built: all tests
	@TB=$(TB) BIN=$(BIN) tests/mutants/cover $(CHECK_UNITS) $(CHECK_INTEG)
# Changes COUNT decisions, one at a time, in files that differ from BASE (or FILES=), and lists those that no test guards.
COUNT ?= 30
SEED  ?= 1
BASE  ?= HEAD^
FILES ?= $(shell git diff --name-only --diff-filter=d $(BASE) -- agent aggregator shared | grep '\.c$$')
mutants: coverage
	+@$(MAKE) --no-print-directory $(PARALLEL) mutants-built
mutants-built: all tests $(MUTATE)
	@TB=$(TB) BIN=$(BIN) MUTATE=$(MUTATE) COMPILE='$(CC) $(subst '"$(VERSION)"',"$(VERSION)",$(EK_CFLAGS)) $(CFLAGS)' tests/mutants/run $(COUNT) $(SEED) $(FILES)

# What reads kernels is tried on several: those tests of the real kernel that need nothing but cgroups, and no exact time.
VM_INTEG := $(filter $(patsubst %,$(TB)/integration/%,sampler sampler_choice sampler_removals \
	sampler_files sampler_files_keep layouts cgroup_namespace confine confined_aggregator $(if $(CROSS),confined_agent) kernel_limits),$(INTEG))
check-vm: deps-vm
	+@$(MAKE) --no-print-directory $(PARALLEL) check-vm-built
check-vm-built: all $(VM) $(VM_INTEG)
	@ARCH=$(ARCH) BIN=$(BIN) tests/vm/matrix $(B)/log$(VARIANT)/vm $(VM) $(VM_INTEG)
	@ARCH=$(ARCH) tests/vm/run -i -t 1200 6.1 $(TB)/vm/culprit

# What follows the Kubernetes API is tried on a real one of version KUBE; the first run builds it, which takes minutes.
# KUBE_NAMES='model access' selects programs.
# Those that take minutes begin first, so that none is left over at the end.
KUBE_LONG  := actuator slack_kept quota_reclaim drain_down install drain drain_stories model
KUBE_NAMES ?= $(KUBE_LONG) $(filter-out $(KUBE_LONG),$(notdir $(KUBE_TESTS)))
check-kube: deps-kube
	+@$(MAKE) --no-print-directory $(PARALLEL) check-kube-built
check-kube-built: all $(KUBE_TESTS) $(LAB)
	@programs=$$(tests/kube/build $(KUBE)) && export TEST_TIMEOUT=$${TEST_TIMEOUT:-1500} && \
	EVENKEEL_KUBE=$$programs TB=$(TB) BIN=$(BIN) TEST_PASSED=$(PASSED) tests/run -j $(JOBS) $(B)/log$(VARIANT) $(patsubst %,$(TB)/kube/%,$(KUBE_NAMES))
# Of the programs those whose subject differs between versions: APIs that one version lacks, or what the API server and the
# scheduler do. The others exercise decisions of evenkeel on the same objects, or skip themselves on this version.
KUBE_VERSIONED := access drain_stories enrolment events extender fit install manifests model quota_status refusals snapshot
check-kube-oldest:
	+@$(MAKE) --no-print-directory check-kube KUBE=1.20 $(if $(CI_ALL),,KUBE_NAMES='$(KUBE_VERSIONED)')

# The images on a real node: a kubelet joined to that control plane, its containers run by containerd. As root.
NODE_PROGRAMS := kube-apiserver kube-scheduler kube-controller-manager kubelet
NODE_BED := GUEST=$(B)/tests/node/guest.tar BIN=$(BIN) TEST_TIMEOUT=900
check-node: deps-node
	+@$(MAKE) --no-print-directory $(PARALLEL) check-node-built
check-node-built: all $(NODE) $(B)/tests/node/guest.tar
	@programs=$$(tests/kube/build $(KUBE) $(NODE_PROGRAMS)) && BIN=$(BIN) packaging/image $(VERSION) && \
		EVENKEEL_KUBE=$$programs $(NODE_BED) tests/run $(B)/log$(VARIANT) $(NODE)
check-node-vm: deps-node-vm
	+@$(MAKE) --no-print-directory $(PARALLEL) check-node-vm-built
check-node-vm-built: all $(NODE) $(B)/tests/node/guest.tar
	@programs=$$(tests/kube/build 1.37 $(NODE_PROGRAMS)) && BIN=$(BIN) packaging/image $(VERSION) && \
		EVENKEEL_KUBE=$$programs $(NODE_BED) tests/run $(B)/log$(VARIANT) \
		tests/node/vm,$(NODE_KERNEL),$(subst $(space),$(comma),$(NODE))

# Container images, and that a build of the same tree in another folder gives the same.
# ARCH="amd64 arm64" makes images of both, and an index of them.
image: deps-image
	+@for arch in $(ARCH); do $(MAKE) --no-print-directory $(PARALLEL) ARCH=$$arch all || exit; done
	@ARCH='$(ARCH)' BIN=$(if $(CROSS),,$(BIN)) packaging/image $(VERSION)
check-image: image
	+@ARCH='$(ARCH)' MAKE='$(MAKE)' tests/image/check $(VERSION)

# The installation as files for `kubectl apply -f`; tests/integration/manifests.c sees that they are current.
# For the images of a registry they go to build/manifests, and both images must have been renamed.
IMAGE_REPO ?= localhost
TAG        ?= $(VERSION)
MANIFESTS   = $(if $(filter localhost:$(VERSION),$(IMAGE_REPO):$(TAG)),packaging/kubernetes,build/manifests)
define render
@mkdir -p $(MANIFESTS)
@{ echo '# $(2). Rendered by `make manifests`: change packaging/kubernetes/core and $(3) instead. The policy evenkeel-api-server opens port 2020 to every address: narrow it.' && \
	kubectl kustomize packaging/kubernetes/$(3); } >$(MANIFESTS)/$(1).part
@sed -i 's,localhost/\(evenkeel-[a-z]*\):[^ ]*$$,$(IMAGE_REPO)/\1:$(TAG),' $(MANIFESTS)/$(1).part
@[ "$$(grep -c ' $(IMAGE_REPO)/evenkeel-[a-z]*:$(TAG)$$' $(MANIFESTS)/$(1).part)" = 2 ] || \
	{ echo 'make manifests: packaging/kubernetes/$(3) does not name both images of localhost' >&2; exit 1; }
@mv $(MANIFESTS)/$(1).part $(MANIFESTS)/$(1)
endef
OPERATOR   := packaging/kubernetes/overlays/prometheus
manifests:
	$(call render,install.yaml,evenkeel for Kubernetes 1.21 and later: kubectl apply -f install.yaml,base)
	$(call render,install-1.20.yaml,evenkeel for Kubernetes 1.19 and 1.20: kubectl apply -f install-1.20.yaml,overlays/legacy)
	@sed -i '/^spec:/q' $(OPERATOR)/rules.yaml && sed 's/./  &/' packaging/monitoring/rules.yaml >>$(OPERATOR)/rules.yaml
	@sed -i '/^  evenkeel.json:/q' $(OPERATOR)/dashboard.yaml && \
		sed 's/./    &/' packaging/monitoring/dashboard.json >>$(OPERATOR)/dashboard.yaml

# Rules, dashboard and metrics, by those who read them.
check-monitoring: deps-monitoring
	+@$(MAKE) --no-print-directory $(PARALLEL) check-monitoring-built
check-monitoring-built: all $(MONITORING) $(FLEET)
	@TB=$(TB) BIN=$(BIN) tests/run $(B)/log$(VARIANT) $(MONITORING)

# The web page, by Debian's Chromium. PAGE_BUDGETS=1 checks the budgets of time, which need an idle machine,
# and PAGE_MINUTES=60 the memory of a page that stays open.
check-page: deps-page
	+@$(MAKE) --no-print-directory $(PARALLEL) check-page-built
check-page-built: all $(FLEET)
	@TB=$(TB) BIN=$(BIN) tests/page/run
# Renews the page's libraries from npm.
page-vendor:
	@packaging/page-vendor

bench: deps-bench
	+@$(MAKE) --no-print-directory $(PARALLEL) bench-built
# What has a budget comes once more at the end, as one table; AGAINST=FILE, the table.json of an earlier commit, is put beside it.
bench-built: all $(BENCH) $(FLEET) $(BENCH_TABLE)
	@for b in $(BENCH); do TB=$(TB) BIN=$(BIN) $$b || exit 1; done
	@$(BENCH_TABLE) $(patsubst %,--bench=%,$(notdir $(BENCH))) $(if $(AGAINST),--against=$(AGAINST)) \
		--commit="$$(git describe --always --dirty 2>/dev/null || echo unknown)"

# Ours beside programs of others that the caller has: PEER_SCHEDULER=PATH is a kube-scheduler with Trimaran's plugins,
# PEER_CA='PATH..' compiled benchmarks of cluster-autoscaler. Without a path its part is skipped.
bench-peers: $(if $(PEER_SCHEDULER),deps-kube,deps)
	+@$(MAKE) --no-print-directory $(PARALLEL) bench-peers-built
bench-peers-built: all $(PEERS)
	@if [ -n '$(PEER_SCHEDULER)' ]; then EVENKEEL_KUBE=$$(tests/kube/build $(KUBE)) && export EVENKEEL_KUBE || exit 1; fi; \
	PEER_SCHEDULER='$(PEER_SCHEDULER)' PEER_CA='$(PEER_CA)' BIN=$(BIN) $(PEERS)
# Schedulers with and without evenkeel place the same bursts on the same nodes (SEEDS=5, BURSTS=, CONTENDERS=,
# PEER_SCHEDULER=PATH of a kube-scheduler with Trimaran's plugins). Ten seconds for each burst, scheduler and seed.
bench-placement: deps-kube
	+@$(MAKE) --no-print-directory $(PARALLEL) bench-placement-built
bench-placement-built: all $(BENCH_PLACEMENT)
	@programs=$$(tests/kube/build $(KUBE)) && EVENKEEL_KUBE=$$programs BIN=$(BIN) $(BENCH_PLACEMENT)

LINT_FLAGS = -std=gnu11 -D_GNU_SOURCE -DEVENKEEL_VERSION='"$(VERSION)"' -I. -I$(GEN) -Wall -Wextra
SOURCES    = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')
USER_C     = $(filter-out bpf/%,$(filter %.c,$(SOURCES)))
HEADERS    = $(filter-out bpf/kernel% bpf/prefetch% bpf/read%,$(filter %.h,$(SOURCES)))
# The analyzer visits no more states of a function. With 225000, its default in depth, a file of the aggregator takes 4 s of CPU,
# with 75000 1.4 s, with 30000 0.7 s, and without the analyzer 0.1 s.
TIDY_DEPTH = $(if $(CI_ALL),,-Xclang -analyzer-config -Xclang max-nodes=30000)

lint: deps-lint
	+@$(MAKE) --no-print-directory $(PARALLEL) lint-built
lint-built: $(PROTO_C) $(SKEL) $(SCRIPT_H)
	tests/lint/layers
	tests/lint/banned
	tests/lint/unreached
	sed '1,/^spec:/d; s/^  //' $(OPERATOR)/rules.yaml | cmp - packaging/monitoring/rules.yaml
	sed '1,/^  evenkeel.json:/d; s/^    //' $(OPERATOR)/dashboard.yaml | cmp - packaging/monitoring/dashboard.json
	clang-format --dry-run -Werror $(SOURCES)
	tests/lint/changed '$(PASSED)' "$(LINT_FLAGS) $(TIDY_DEPTH)" $(USER_C) $(HEADERS) >$(B)/lint
	sed -n 's/.* \(.*\.h\)$$/\1/p' $(B)/lint | xargs -r -P$(shell nproc) -n 8 tests/lint/headers "$(LINT_FLAGS)"
	sed -n 's/.* \(.*\.c\)$$/\1/p' $(B)/lint >$(B)/lint-files
	[ ! -s $(B)/lint-files ] || cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr \
		--suppress=missingIncludeSystem --suppress=readdirCalled --library=posix \
		--include=tests/lint/cppcheck.h -D_GNU_SOURCE -I. -I$(GEN) --suppress='*:$(GEN)/*' -j$(shell nproc) --file-list=$(B)/lint-files
	xargs -r -P$(shell nproc) -I{} clang-tidy --quiet {} -- $(LINT_FLAGS) $(TIDY_DEPTH) <$(B)/lint-files 2>/dev/null
	[ -z '$(PASSED)' ] || sed -n '/^unknown/!s/ .*//p' $(B)/lint | (mkdir -p '$(PASSED)' && cd '$(PASSED)' && xargs -r touch)

# A fuzzer for each target, a minute each (FUZZ_SECONDS=, FUZZ_NAMES=); what it finds is kept in build/fuzz.
FUZZ_SECONDS ?= 60
FUZZERS      := $(patsubst %,$(TB)/fuzzer/%,$(FUZZ_NAMES))
FUZZ_OPTIONS  = $(subst $(space),$(comma),-max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1)
fuzz: deps-lint
	+@$(MAKE) --no-print-directory $(PARALLEL) CC=$(CLANG) SAN=fuzzer-no-link,address,undefined fuzz-built
fuzz-built: $(FUZZERS)
	@mkdir -p $(addprefix $(B)/fuzz/,$(FUZZ_NAMES))
	@TEST_PASSED=$(PASSED) TEST_TIMEOUT=$$(($(FUZZ_SECONDS) + 60)) tests/run -j $(shell nproc) $(B)/log$(VARIANT) $(foreach n,$(FUZZ_NAMES),$(strip \
		$(TB)/fuzzer/$(n)$(comma)$(FUZZ_OPTIONS)$(comma)-artifact_prefix=$(B)/fuzz/$(n)-$(comma)$(B)/fuzz/$(n)$(comma)tests/fuzz/corpus/$(n)))
$(TB)/fuzzer/%: $(O)/tests/fuzz/%.o $(ALL_A)
	$(call link,-fsanitize=fuzzer $(TEST_LIBS))

# What programs say of themselves; see shared/cli_spec.h.
MANUALS     := $(B)/man/evenkeel.1 $(B)/man/evenkeel-agent.8 $(B)/man/evenkeel-aggregator.8 $(B)/man/evenkeel-actuator.8
COMPLETIONS := $(foreach p,$(notdir $(PROGRAMS)),$(foreach s,bash zsh fish,$(B)/completions/$(s)/$(p)))
documents: $(MANUALS) $(COMPLETIONS)
define manual
$(B)/man/%.$(1): $(BIN)/%
	@mkdir -p $$(@D)
	$$(call say,MAN,$$@)$$< __manual >$$@
endef
$(foreach n,1 8,$(eval $(call manual,$(n))))
define completion
$(B)/completions/$(1)/%: $(BIN)/%
	@mkdir -p $$(@D)
	$$(call say,COMPL,$$@)$$< __completion $(1) >$$@
endef
$(foreach s,bash zsh fish,$(eval $(call completion,$(s))))

prefix  ?= /usr/local
share   := $(DESTDIR)$(prefix)/share
docdir  ?= $(prefix)/share/doc/evenkeel
bashdir ?= $(prefix)/share/bash-completion/completions
zshdir  ?= $(prefix)/share/zsh/site-functions
fishdir ?= $(prefix)/share/fish/vendor_completions.d
install: all documents
	install -d $(DESTDIR)$(prefix)/bin $(share)/man/man1 $(share)/man/man8 \
		$(addprefix $(DESTDIR),$(bashdir) $(zshdir) $(fishdir) $(docdir))
	install -m 755 $(PROGRAMS) packaging/kubectl_complete-evenkeel $(DESTDIR)$(prefix)/bin
	ln -sf evenkeel $(DESTDIR)$(prefix)/bin/kubectl-evenkeel
	install -m 644 $(filter %.1,$(MANUALS)) $(share)/man/man1
	install -m 644 $(filter %.8,$(MANUALS)) $(share)/man/man8
	install -m 644 $(wildcard packaging/docs/*.md) $(DESTDIR)$(docdir)
	install -m 644 $(filter $(B)/completions/bash/%,$(COMPLETIONS)) $(DESTDIR)$(bashdir)
	for p in $(notdir $(PROGRAMS)); do \
		install -m 644 $(B)/completions/zsh/$$p $(DESTDIR)$(zshdir)/_$$p && \
		install -m 644 $(B)/completions/fish/$$p $(DESTDIR)$(fishdir)/$$p.fish || exit 1; done

# What the packages put into /etc: every option with its default, but for those that are set.
install-config: all
	install -d $(DESTDIR)/etc/evenkeel
	$(BIN)/evenkeel-agent __config key-file=/etc/evenkeel/keys >$(DESTDIR)/etc/evenkeel/agent.yaml
	$(BIN)/evenkeel-aggregator __config key-file=/etc/evenkeel/keys state-dir=/var/lib/evenkeel-aggregator \
		>$(DESTDIR)/etc/evenkeel/aggregator.yaml

deb: deps-deb
	@ARCH=$(ARCH) packaging/deb $(VERSION)

# Packages, and what they make of a machine; MACHINE=no leaves the virtual one out.
check-packages: deps-packages
	@tests/packages/check $(VERSION) $(B)/log/packages

clean:
	rm -rf $(B)

-include $(shell test -d $(O) && find $(O) -name '*.d')
