#!/usr/bin/env bash
# Compares Go benchmarks of the working tree with those of a commit:
#   benchstat.sh COMMIT COUNT PATTERN PACKAGE…
# The two take turns, so that what else the machine does meets both alike. A
# package that the commit does not have is left out.
set -euo pipefail
base=$1 count=$2 pattern=$3
shift 3

tree=$PWD
dir=$(mktemp -d)
finish() {
	git -C "$tree" worktree remove --force "$dir/base" || true
	rm -rf "$dir"
}
trap finish EXIT
git worktree add --quiet --detach "$dir/base" "$base"
ln -s "$tree" "$dir/new"

packages=()
for package; do
	if ! compgen -G "$dir/base/$package/*_test.go" >/dev/null; then
		echo "benchstat: $base has no tests in $package" >&2
		continue
	fi
	packages+=("$package")
	for side in base new; do
		echo "compiling $package of $side" >&2
		(cd "$dir/$side/" && go test -c -o "$dir/$side-${package//\//-}.test" "./$package")
	done
done
for round in $(seq "$count"); do
	for package in "${packages[@]}"; do
		for side in base new; do
			echo "round $round of $count: $package of $side" >&2
			(cd "$dir/$side/$package" && "$dir/$side-${package//\//-}.test" -test.short -test.run '^$' -test.bench "$pattern" -test.benchmem) >>"$dir/$side.txt"
		done
	done
done
go tool -modfile=internal/tools/go.mod benchstat "$base=$dir/base.txt" "tree=$dir/new.txt"
