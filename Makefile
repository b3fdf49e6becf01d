# Mutation testing, by hand, since it takes hours: make mutate PKG=privacy (or noise, release, divergence, interval, secagg, stopping).
# A mutant that lives is in testdata/mutants.txt with the reason why it changes nothing that is promised, or a test is missing.
#
# Of gremlins v0.6.0: without --test-cpu, which it hands to go test as one word, so that every mutant counts as killed; conditions of
# case clauses count as not covered, whatever tests do; and a mutant that does not compile counts as killed.
.PHONY: mutate
mutate:
	@test -n "$(PKG)" || { echo 'usage: make mutate PKG=privacy' >&2; exit 2; }
	GOFLAGS='-short -vet=off' nice -n 19 go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --workers 1 --timeout-coefficient 10 ./$(PKG)
