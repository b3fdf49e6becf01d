# Mutation testing, by hand, since it takes up to an hour: make mutate PKG=privacy (or noise, release,
# secagg, stopping, internal/base/divergence, internal/base/interval). It ends with an error if a mutant lives that
# testdata/mutants.txt does not name, or if one that is named there does not live.
.PHONY: mutate
mutate:
	@test -n "$(PKG)" || { echo 'usage: make mutate PKG=privacy' >&2; exit 2; }
	nice -n 19 go run ./internal/mutate ./$(PKG)
