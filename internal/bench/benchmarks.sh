#!/usr/bin/env bash
# Prints the folders of Go benchmarks whose names match a pattern, one a line:
#   benchmarks.sh PATTERN [TREE]
# The pattern is that of `go test -bench`: what follows a slash, up to the next "|", is
# of sub-benchmarks, and is not looked at here. Nothing that matches is an error.
set -euo pipefail
pattern=$(sed -E 's#/[^|]*##g' <<<"$1") tree=${2:-.}
cd "$tree"

folders=$(grep -rE --include='*_test.go' '^func Benchmark' . | while IFS=: read -r file declaration; do
	name=${declaration#func }
	if [[ ${name%%(*} =~ ${pattern:-.} ]]; then
		dirname "${file#./}"
	fi
done | sort -u)
if [ -z "$folders" ]; then
	echo "no benchmark matches $1" >&2
	exit 1
fi
echo "$folders"
