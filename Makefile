# make check before a commit, make test before a request; .ci/run has all that is checked.
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT = go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# The hot paths: samplers, a release, an index, a run.
HOT = Run|Episode|Round|DPTT|Exact|FastDiscrete|Binomial|BernoulliSum|KLUpper|DEpsUpper
HOT_PACKAGES = ./sim ./policy/identify ./release ./privacy ./noise ./bandit ./internal/base/divergence

.PHONY: check test bench benchdiff cover mutate
check:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change: $$unformatted" >&2; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	go test -short -vet=off ./...

test:
	go test ./...

# Times of this machine, in out/bench.txt, and what moved against testdata/bench.txt by more than noise. That
# file has its machine in it: on another one only allocations are to be compared, or against a run of the
# commit before (make bench BASE=before.txt). A new baseline is a copy of out/bench.txt.
BASE = testdata/bench.txt
bench:
	@mkdir -p out
	go test -run '^$$' -bench '^Benchmark($(HOT))$$' -benchmem -benchtime 20ms -count 6 -cpu 1 $(HOT_PACKAGES) >out/bench.txt || { cat out/bench.txt; exit 1; }
	@$(MAKE) --no-print-directory benchdiff

benchdiff:
	@$(BENCHSTAT) -table pkg -ignore cpu,goos,goarch -filter '.unit:(sec/op OR B/op OR allocs/op)' $(BASE) out/bench.txt \
	| awk '/^pkg:/ { pkg = $$0 } / vs base/ { head = $$0 } / \(p=/ && !/ ~ / { if (pkg) print pkg; if (head) print head; print; pkg = head = ""; n++ } \
	END { if (!n) print "nothing moved by more than noise" }'

cover:
	@mkdir -p out
	go test -short -coverprofile out/cover.txt ./...
	go tool cover -func out/cover.txt | tail -n 1

# Mutation testing, by hand, since it takes up to an hour: make mutate PKG=privacy (or noise, release,
# secagg, stopping, internal/base/divergence, internal/base/interval). It ends with an error if a mutant lives that
# testdata/mutants.txt does not name, or if one that is named there does not live.
mutate:
	@test -n "$(PKG)" || { echo 'usage: make mutate PKG=privacy' >&2; exit 2; }
	nice -n 19 go run ./internal/mutate ./$(PKG)

# Kill the service 200 times under load, at random and at named points: what is released must be what
# was accepted, and stores that are wrong must be found.
.PHONY: crash
crash:
	SOTTO_CRASHES=200 go test -count=1 -v -run '^TestCrash' ./serve
