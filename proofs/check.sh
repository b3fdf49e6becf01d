#!/usr/bin/env bash
# Compiles all proofs with Coq (8.16 is what they are written for) and looks at what each theorem
# rests on: on nothing but the standard library's axioms of real numbers. It ends with 0 or 1, and
# leaves nothing behind but, in a directory that is named, the model of the samplers as a program:
# proofs/check.sh [DIRECTORY]. What is proved, and what is not, is in README.md.
set -euo pipefail
model=${1:+$(mkdir -p "$1" && cd "$1" && pwd)}
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mapfile -t files < <(ls *.v)
cp "${files[@]}" run.ml "$out"
cd "$out"

# Whoever says these has proved nothing.
if grep -nwE 'Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset Guard Checking|bypass_check' "${files[@]}"; then
  echo 'proofs: what is assumed above is not proved' >&2
  exit 1
fi

{
  printf '%%.vo: %%.v\n\tcoqc -q -R . Sotto $<\n'
  coqdep -R . Sotto "${files[@]}" | sed 's/^\([^ ]*\.vo\) [^:]*:/\1:/'
} >rules
make -s -j "$(nproc)" -f rules "${files[@]/%.v/.vo}"

# One axiom a name: how real numbers are decided and made, and that functions are equal where their
# values are.
allowed='ClassicalDedekindReals.sig_forall_dec|ClassicalDedekindReals.sig_not_dec|FunctionalExtensionality.functional_extensionality_dep'
theorems=$(for file in "${files[@]}"; do sed -n "s/^Theorem \([A-Za-z0-9_]*\).*/${file%.v}.\1/p" "$file"; done)
{
  for file in "${files[@]}"; do echo "From Sotto Require ${file%.v}."; done
  for name in $theorems; do echo "Redirect \"$name\" Print Assumptions $name."; done
} >Assumptions.v
coqc -q -R . Sotto Assumptions.v
for name in $theorems; do
  if grep -qx 'Closed under the global context' "$name.out"; then
    echo "$name: no axiom"
    continue
  fi
  head -n 1 "$name.out" | grep -qx 'Axioms:' || { echo "proofs: what $name rests on cannot be read" >&2; exit 1; }
  axioms=$(sed -nE '1d; s/^([^ :]+).*/\1/p' "$name.out") # what its type is stands below, indented
  if other=$(grep -vxE "$allowed" <<<"$axioms"); then
    echo "proofs: $name rests on" $other >&2
    exit 1
  fi
  echo "$name: the standard library's axioms of real numbers"
done
echo "$(wc -w <<<"$theorems") theorems, $(cat "${files[@]}" | wc -l) lines"

[ -z "$model" ] || ocamlopt -w -a -I +zarith zarith.cmxa model.mli model.ml run.ml -o "$model/model"
