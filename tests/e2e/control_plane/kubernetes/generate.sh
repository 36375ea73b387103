#!/usr/bin/env bash
# Writes go.mod and go.sum for one version of Kubernetes into a folder.
#
#   generate.sh VERSION FOLDER        e.g. generate.sh 1.36.3 .
#
# k8s.io/kubernetes points its staging modules at local folders and asks for v0.0.0 of them, which a module that depends on
# it cannot follow. So every one of those lines becomes a replacement by the published module of the same release.
set -euo pipefail

version=$1
folder=$2
tools=(kube-apiserver kube-controller-manager kube-scheduler kubectl)

mkdir -p "$folder"
cd "$folder"
export GOWORK=off

# Outside of any module: this only fetches the go.mod file that names the staging modules.
upstream=$(cd / && go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
[[ -r $upstream ]] || { echo "generate.sh: k8s.io/kubernetes v$version is not served as a Go module" >&2; exit 1; }

{
	echo "// Made by kubernetes/generate.sh $version; do not edit."
	echo "module tidb-ha-webhook/tests/e2e/control_plane/kubernetes"
	echo
	grep -E '^go [0-9]' "$upstream"
	echo
	grep -E '^godebug default=' "$upstream" || true
	echo
	echo "tool ("
	printf '\tk8s.io/kubernetes/cmd/%s\n' "${tools[@]}"
	echo ")"
	echo
	echo "require k8s.io/kubernetes v$version"
	echo
	echo "replace ("
	sed -nE "s#^\t?(replace )?(k8s\.io/[a-z0-9-]+) => \./staging/.*#\t\2 => \2 v0.${version#1.}#p" "$upstream"
	echo ")"
} >go.mod
rm -f go.sum
go mod tidy
