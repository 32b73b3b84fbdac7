#!/usr/bin/env bash
# Compares Go benchmarks of the working tree with those of a commit:
#   benchstat.sh COMMIT COUNT PATTERN
# The two take turns, so that what else the machine does meets both alike. A
# package without a benchmark that matches is not compiled, and one that the commit
# does not have is left out.
set -euo pipefail
base=$1 count=$2 pattern=$3

tree=$PWD
list=$tree/internal/bench/benchmarks.sh
commit=$(git rev-parse --quiet --verify "$base^{commit}") || { echo "benchstat: $base is no commit" >&2; exit 2; }
found=$("$list" "$pattern") || exit 2
doubt() {
	if [ "$count" -lt 6 ]; then
		echo "benchstat: COUNT=$count is not enough to tell a difference from chance, geomean included: it takes 6" >&2
	fi
}
doubt

dir=$(mktemp -d)
finish() {
	if [ -e "$dir/base" ]; then
		git -C "$tree" worktree remove --force "$dir/base"
	fi
	rm -rf "$dir"
}
trap finish EXIT
git worktree add --quiet --detach "$dir/base" "$commit"
ln -s "$tree" "$dir/new"

before=$("$list" "$pattern" "$dir/base") || { echo "benchstat: $base has none of these" >&2; exit 2; }
packages=()
for package in $found; do
	if ! grep -qxF "$package" <<<"$before"; then
		echo "benchstat: $base has no such benchmark in $package" >&2
		continue
	fi
	packages+=("$package")
	for side in base new; do
		echo "compiling $package of $side" >&2
		(cd "$dir/$side/" && go test -c -o "$dir/$side-${package//\//-}.test" "./$package")
	done
done
if [ ${#packages[@]} -eq 0 ]; then
	echo "benchstat: $base has none of these" >&2
	exit 2
fi
for round in $(seq "$count"); do
	for package in "${packages[@]}"; do
		for side in base new; do
			echo "round $round of $count: $package of $side" >&2
			(cd "$dir/$side/$package" && "$dir/$side-${package//\//-}.test" -test.short -test.run '^$' -test.bench "$pattern" -test.benchmem) >>"$dir/$side.txt"
		done
	done
done
go tool -modfile=internal/tools/go.mod benchstat "$base=$dir/base.txt" "tree=$dir/new.txt"
doubt
