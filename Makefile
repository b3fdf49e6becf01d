# make check before a commit, make test before a request; .ci/run has all that is checked.
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT = go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# The hot paths: samplers, a release, an index, a run.
HOT = Run|Episode|Round|DPTT|Exact|FastDiscrete|Binomial|BernoulliSum|KLUpper|DEpsUpper
HOT_PACKAGES = ./sim ./policy/identify ./release ./privacy ./noise ./bandit ./internal/divergence

.PHONY: explorer
# The explorer's page for a host of files: it needs no server, and plays as WebAssembly.
explorer:
	go run ./lab/explore/make out/explorer

# The documents as a site in out/site, for any host of files: with the explorer, and a search that needs no server
# (node and npm build it). make site EARLIER=v0.2.0,v0.1.0 builds the documents of tags beside it, BASE_PATH=/sotto/ is
# for a host that gives it there.
SITE = $(CURDIR)/out/site
.PHONY: site
site:
	@[ -d deploy/site/node_modules ] || npm --prefix deploy/site ci
	go run -C deploy/site . -out $(abspath $(SITE)) $(if $(VERSION),-version $(VERSION)) $(if $(EARLIER),-earlier $(EARLIER)) $(if $(BASE_PATH),-base $(BASE_PATH))

# What somebody installs, in out/release: archives, deb, rpm, an image, bills of materials and SHA256SUMS, of a
# commit and not of the files that are here. Equal commits give equal bytes with the same Go:
# make release VERSION=v0.1.0 SYSTEMS=linux/amd64 RELEASE=/tmp/one
RELEASE = $(CURDIR)/out/release
.PHONY: release
release:
	go run -C deploy/release . -out $(abspath $(RELEASE)) $(if $(VERSION),-version $(VERSION)) $(if $(SYSTEMS),-targets $(SYSTEMS))

.PHONY: docs docs-true
# Pages and parts of pages that are made: commands, policies, declarations, the API, the bibliography, keys, tables of choose and interval.
# make docs FASHION=DIR plays the sources again (24 minutes) for claims.csv, reproduction.md and the gallery, with the
# training files of Fashion-MNIST in DIR (docs/experiments.md). The gallery's other figures name their commands.
# SEEDS=20 also plays what decides their claims with so many other seeds, for hours, and goes on where it was stopped.
PAPER = results/reproduce-paper
docs:
	go test . -run 'Bibliography$$' -update
	go test ./cli -run 'CommandsPage$$' -update
	go test ./catalog -run 'PoliciesPage$$' -update
	go test ./live/decl -run 'DeclarationPage$$' -update
	go test ./live/serve/api -run 'APIPage$$' -update
	go test . -run 'AlertsPage$$' -update
	go test ./live/internal/simulate -run 'Documented$$' -update
	go test ./choose -run 'ClassesPage$$' -update
	go test ./lab/experiment -run 'TestReference$$' -update
	go test ./interval -run 'InferencePage$$' -update
ifdef FASHION
	go run ./cmd/sotto reproduce --preset paper --data $(FASHION) $(if $(SEEDS),--seeds $(SEEDS)) --markdown docs/reproduction.md
	cp $(PAPER)/claims.csv docs/claims.csv
	go test ./lab/paper -run VerdictsPage -update
	$(if $(SEEDS),cp $(PAPER)/seeds.csv lab/paper/seeds.csv)
	cp $(PAPER)/data/thesis-6.2/figures/thesis-6.2-c.svg docs/gallery/trace.svg
	cp $(PAPER)/data/thesis-5.3/figures/thesis-5.3-far.svg docs/gallery/regimes.svg
endif

# The numbers of README and docs against the commands in the comments above them, all of them (CI runs the quick ones).
docs-true:
	SOTTO_TRUE=all SOTTO_DOCS=all nice -n 19 go test ./cli -count 1 -timeout 60m -v -run 'TestDocs(True)?$$'

.PHONY: check test bench benchdiff cover mutate guard simulate
check:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change: $$unformatted" >&2; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	go test -short -vet=off ./...

test:
	go test ./...

# Times of this machine, in out/bench.txt, and what moved against testdata/bench.txt by more than noise:
# allocations whose change is significant, and times that also moved by a tenth or more. Rounds go through all
# benchmarks, so that what a shared machine does in between is in the noise. The baseline has its machine in it:
# on another one compare with a run of the commit before (make bench BASE=before.txt). A new one is a copy
# of out/bench.txt.
BASE = testdata/bench.txt
ROUNDS = 6
bench:
	@rm -rf out/bench out/bench.txt; mkdir -p out/bench
	go test -c -o out/bench/ $(HOT_PACKAGES)
	@for round in $$(seq $(ROUNDS)); do for p in $(HOT_PACKAGES); do \
	(cd $$p && $(CURDIR)/out/bench/$$(basename $$p).test -test.run '^$$' -test.bench '^Benchmark($(HOT))$$' -test.benchmem \
	-test.benchtime 20ms -test.cpu 1) >>out/bench.txt || { tail out/bench.txt; exit 1; }; done; done
	@$(MAKE) --no-print-directory benchdiff

benchdiff:
	@$(BENCHSTAT) -table pkg -ignore cpu,goos,goarch -filter '.unit:(sec/op OR B/op OR allocs/op)' $(BASE) out/bench.txt \
	| awk '/^pkg:/ { pkg = $$0 } / vs base/ { head = $$0; time = /sec\/op/ } \
	/\(p=/ && !/ ~ / { match($$0, /[-+][0-9.]+%/); by = substr($$0, RSTART + 1, RLENGTH - 2) + 0; if (time && by < 10) next; \
	if (pkg) print pkg; if (head) print head; print; pkg = head = ""; n++ } \
	END { if (!n) print "nothing moved by more than noise" }'

cover:
	@mkdir -p out
	go test -short -coverprofile out/cover.txt ./...
	go tool cover -func out/cover.txt | tail -n 1

# What the service answered and stored at another commit beside what it does now, in traces that TestGuard says are
# others: make guard FROM=437 N=1.
AT = eb409f2
N = 1
guard: SHELL = bash
guard:
	@test -n "$(FROM)" || { echo 'usage: make guard FROM=437 N=1 AT=3e7924e' >&2; exit 2; }
	@rm -rf out/guard; mkdir -p out/guard/was out/guard/is
	@git worktree add -q --detach out/guard/tree $(AT)
	@mkdir -p out/guard/tree/live/internal/simulate; cp -r live/internal/simulate/{guard,trace,declare,disk}_test.go live/internal/simulate/testdata out/guard/tree/live/internal/simulate; cp -r internal/testkit out/guard/tree/internal
	@-go test -C out/guard/tree ./live/internal/simulate -run 'TestGuard$$' -guard.from $(FROM) -guard.n $(N) -guard.out $(CURDIR)/out/guard/was
	@-go test ./live/internal/simulate -run 'TestGuard$$' -guard.from $(FROM) -guard.n $(N) -guard.out $(CURDIR)/out/guard/is
	@git worktree remove --force out/guard/tree
	diff -ru out/guard/was out/guard/is

# Worlds of the simulated service until there were so many decisions (10^9 take a night): make simulate
# DECISIONS=1000000 FROM=43 goes on from world 43, which a failure names.
DECISIONS = 1000000000
simulate:
	go test ./live/internal/simulate -run 'TestSimulate$$' -count 1 -timeout 100h -v -simulate.from $(or $(FROM),0) -simulate.decisions $(DECISIONS)

# Mutation testing, by hand, since it takes up to an hour: make mutate PKG=privacy (or noise, release,
# secagg, trial/stopping, internal/divergence, internal/stats). It ends with an error if a mutant lives that
# testdata/mutants.txt does not name, or if one that is named there does not live.
mutate:
	@test -n "$(PKG)" || { echo 'usage: make mutate PKG=privacy' >&2; exit 2; }
	nice -n 19 go run ./internal/mutate ./$(PKG)

# Kill the service 200 times under load, at random and at named points, and two processes on
# PostgreSQL 100 times, which are stopped too: what is released must be what was accepted, and
# stores that are wrong must be found.
.PHONY: crash
crash:
	CI=true SOTTO_CRASHES=200 go test -count=1 -timeout 1h -v -run '^TestCrash(Twins)?$$' ./live/serve
	CI=true SOTTO_CRASHES=100 go test -count=1 -timeout 1h -v -run '^TestCrashNodes(Twins)?$$' ./live/serve

# Simulated visitors of the engine, under every policy that is played live, against sim; and a day of
# ten million decisions.
.PHONY: visitors day
visitors:
	SOTTO_VISITORS=60 go test -count=1 -v -timeout 60m -run '^TestVisitorsRegret$$' ./live/serve

day:
	SOTTO_DAY=1e7 go test -count=1 -timeout 60m -run '^$$' -bench '^BenchmarkDay$$' -benchtime 1x ./live/serve
