#!/usr/bin/env bash
# Builds cert-manager's controller, injector and webhook from the Go modules that the go.mod beside this script names,
# and puts its kinds beside them: what the tests of the certificate modes need. All lands in ../../control_plane/bin.
#
# 1.11 is the last release whose programs belong to its module; those of later ones have modules of their own, which no
# module proxy serves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

bin=$PWD/../../control_plane/bin
programs=(cainjector controller webhook)
made="$(cat build.sh go.mod go.sum | cksum)"

if [[ -r $bin/.made-cert-manager && $(<"$bin/.made-cert-manager") == "$made" ]]; then
	exit
fi
command -v go >/dev/null || {
	echo "cert-manager: Go is not installed; it is needed to build the binaries (Go 1.26 or newer)" >&2
	exit 1
}
export CGO_ENABLED=0 GOWORK=off
echo "cert-manager: the first build takes about 3 minutes on 2 cores, a later one seconds"
rm -rf "$bin/.new-cert-manager"
mkdir -p "$bin/.new-cert-manager"
for program in "${programs[@]}"; do
	echo "cert-manager:   building $program"
	# The mirror that modules come from is the machine's affair: it does not belong in a log.
	go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$bin/.new-cert-manager/cert-manager-$program" \
		"github.com/cert-manager/cert-manager/cmd/$program" 2>&1 | sed -E 's#https?://[^/ ]+#(module proxy)#g' >&2
	mv -f "$bin/.new-cert-manager/cert-manager-$program" "$bin/cert-manager-$program"
done
rmdir "$bin/.new-cert-manager"
module=$(go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)
rm -rf "$bin/cert-manager-kinds"
mkdir -p "$bin/cert-manager-kinds"
# Their labels are templates of cert-manager's own chart.
for kind in "$module"/deploy/crds/*.yaml; do
	sed '/^  labels:$/,/^spec:$/{/^spec:$/!d}' "$kind" >"$bin/cert-manager-kinds/${kind##*/}"
done
echo "$made" >"$bin/.made-cert-manager"
