#!/usr/bin/env bash
# Builds the control plane that the end-to-end tests run: kube-apiserver, kube-controller-manager, kube-scheduler, kubectl,
# etcd, kwok and tidb-operator, from the Go modules that the go.mod files beside this script name. Everything lands in bin/ (git-ignored).
#
#   build.sh             the control plane
#   build.sh helm        Helm 3 and Helm 4, which the chart's tests need
#
#   KUBERNETES_VERSION   the version of Kubernetes, default 1.36.3
#   KUBEBUILDER_ASSETS   a folder as envtest's setup makes it: what is in there is used and not built
#
# To move the default: change it below, run kubernetes/generate.sh VERSION kubernetes, commit go.mod and go.sum.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

default_version=1.36.3
version=${KUBERNETES_VERSION:-$default_version}
version=${version#v}
assets=${KUBEBUILDER_ASSETS:-}
kubernetes=(kube-apiserver kube-controller-manager kube-scheduler kubectl)
bin=$PWD/bin

# No C compiler, no version control and no workspace of the caller have a say in the build.
export CGO_ENABLED=0 GOWORK=off

say() { echo "control plane: $*"; }

fail() {
	say "$*" >&2
	exit 1
}

# What of the named binaries has to come from here, because KUBEBUILDER_ASSETS has it not.
missing() {
	local name
	for name in "$@"; do
		[[ -n $assets && -x $assets/$name ]] || echo "$name"
	done
}

# current GROUP KEY BINARY...: bin/ already has these binaries, made from this version and these module files.
current() {
	local group=$1 key=$2 name
	shift 2
	[[ -r $bin/.made-$group && $(<"$bin/.made-$group") == "$key" ]] || return 1
	for name in "$@"; do
		[[ -x $bin/$name ]] || return 1
	done
}

# The version, and a checksum of what else decides about the result.
key() {
	echo "$1 $(cat build.sh "$2/go.mod" "$2/go.sum" | cksum)"
}

need_go() {
	command -v go >/dev/null || fail "Go is not installed; it is needed to build the binaries (Go 1.26 or newer)"
}

# The mirror that modules come from is the machine's affair: it does not belong in a log.
without_hosts() {
	sed -E 's#https?://[^/ ]+#(module proxy)#g' >&2
}

# build FOLDER LDFLAGS BINARY=PACKAGE...: half-written files never stand in bin/ under a final name.
build() {
	local folder=$1 ldflags=$2 pair
	shift 2
	rm -rf "$bin/.new"
	mkdir "$bin/.new"
	for pair in "$@"; do
		say "  building ${pair%%=*}"
		(cd "$folder" && go build -trimpath -buildvcs=false -ldflags "$ldflags" -o "$bin/.new/${pair%%=*}" "${pair#*=}") 2>&1 | without_hosts
		mv -f "$bin/.new/${pair%%=*}" "$bin/${pair%%=*}"
	done
	rmdir "$bin/.new"
}

# Prints the folder with the go.mod and go.sum for the wanted version; those of the default version are committed.
kubernetes_module() {
	local folder=kubernetes
	if [[ $version != "$default_version" ]]; then
		folder=$bin/.kubernetes-$version
		if [[ ! -s $folder/go.sum ]]; then
			need_go
			say "  writing go.mod and go.sum for Kubernetes $version" >&2
			kubernetes/generate.sh "$version" "$folder" 2>&1 | without_hosts
		fi
	fi
	echo "$folder"
}

build_kubernetes() {
	local wanted name folder key minor package=k8s.io/component-base/version pairs=()
	mapfile -t wanted < <(missing "${kubernetes[@]}")
	((${#wanted[@]})) || return 0
	folder=$(kubernetes_module)
	key=$(key "$version" "$folder")
	current kubernetes "$key" "${wanted[@]}" && return 0
	need_go
	# Gone until all are built: after an interruption bin/ may hold some of the old version and some of the new.
	rm -f "$bin/.made-kubernetes"
	say "Kubernetes $version: the first build takes about 12 minutes on 2 cores, a later one seconds"
	for name in "${wanted[@]}"; do
		pairs+=("$name=k8s.io/kubernetes/cmd/$name")
	done
	minor=${version#1.}
	# The linker's stamps are what /version and the feature gates' version logic read.
	build "$folder" "-s -w -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}" "${pairs[@]}"
	echo "$key" >"$bin/.made-kubernetes"
}

build_etcd() {
	local key
	[[ -n $(missing etcd) ]] || return 0
	key=$(key - etcd)
	current etcd "$key" etcd && return 0
	need_go
	rm -f "$bin/.made-etcd"
	say "etcd: the first build takes about 1 minute on 2 cores"
	build etcd "-s -w" etcd=go.etcd.io/etcd/server/v3
	echo "$key" >"$bin/.made-etcd"
}

build_kwok() {
	local key module stage
	key=$(key - kwok)
	current kwok "$key" kwok && return 0
	need_go
	rm -f "$bin/.made-kwok"
	say "kwok: the first build takes about 2 minutes on 2 cores"
	build kwok "-s -w" kwok=sigs.k8s.io/kwok/cmd/kwok
	# A kwok built as a dependency has no stages inside: it gets the files that its module ships.
	module=$(cd kwok && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
	rm -rf "$bin/kwok-stages"
	for stage in node/fast node/heartbeat-with-lease pod/fast; do
		mkdir -p "$bin/kwok-stages/$stage"
		find "$module/kustomize/stage/$stage" -name '*.yaml' ! -name kustomization.yaml \
			-exec install -m 644 {} "$bin/kwok-stages/$stage/" ';'
	done
	echo "$key" >"$bin/.made-kwok"
}

build_helm() {
	local major=$1 key
	key=$(key - "helm$major")
	current "helm$major" "$key" "helm$major" && return 0
	need_go
	rm -f "$bin/.made-helm$major"
	say "Helm $major: the first build takes about 3 minutes on 2 cores"
	# Unstamped, Helm tells charts that it speaks with Kubernetes 1.20, whatever client library it was built from.
	build "helm$major" "-s -w $(helm_stamps "helm$major")" "helm$major=helm.sh/helm/v$major/cmd/helm"
	echo "$key" >"$bin/.made-helm$major"
}

# What its own Makefile stamps: its version, and the newest Kubernetes that its client library knows.
helm_stamps() {
	local folder=$1 major=${1#helm} module client internal
	module=$(cd "$folder" && go list -m -f '{{.Version}}' "helm.sh/helm/v$major")
	client=$(cd "$folder" && go list -m -f '{{.Version}}' k8s.io/client-go)
	internal=helm.sh/helm/v$major
	[[ $major == 3 ]] || echo "-X $internal/internal/version.version=$module"
	[[ $major != 3 ]] || echo "-X $internal/internal/version.version=$module" \
		"-X $internal/pkg/lint/rules.k8sVersionMajor=1 -X $internal/pkg/lint/rules.k8sVersionMinor=$(cut -d. -f2 <<<"$client")" \
		"-X $internal/pkg/chartutil.k8sVersionMajor=1 -X $internal/pkg/chartutil.k8sVersionMinor=$(cut -d. -f2 <<<"$client")"
}

# A real client of the webhook: the controller manager of tidb-operator v1, and the kinds that it works on.
build_tidb_operator() {
	local key module
	key=$(key - tidb-operator)
	current tidb-operator "$key" tidb-controller-manager && return 0
	need_go
	rm -f "$bin/.made-tidb-operator"
	say "tidb-operator: the first build takes about 5 minutes on 2 cores, a later one seconds"
	# PD's port is a variable of the linker: 2379 might be taken by an etcd of this machine.
	build tidb-operator "-s -w -X github.com/pingcap/tidb-operator/pkg/apis/pingcap/v1alpha1.customPortPDClient=12379" \
		tidb-controller-manager=github.com/pingcap/tidb-operator/cmd/controller-manager
	module=$(cd tidb-operator && go list -m -f '{{.Dir}}' github.com/pingcap/tidb-operator)
	rm -rf "$bin/tidb-operator-kinds"
	mkdir -p "$bin/tidb-operator-kinds"
	find "$module/manifests/crd/v1" -name '*.yaml' -exec install -m 644 {} "$bin/tidb-operator-kinds/" ';'
	echo "$key" >"$bin/.made-tidb-operator"
}

# Not forbidden (the skew policy allows some of it), but nobody should have to find it out from a strange test failure.
warn_of_mixed_versions() {
	local theirs
	[[ -n $assets && -x $assets/kube-apiserver ]] || return 0
	theirs=$("$assets/kube-apiserver" --version)
	[[ $theirs == "Kubernetes v$version" ]] ||
		say "note: KUBEBUILDER_ASSETS has $theirs, the rest is $version (KUBERNETES_VERSION=${theirs##* v} makes them alike)"
}

mkdir -p "$bin"
if [[ ${1:-} == helm ]]; then
	build_helm 3
	build_helm 4
	exit
fi
[[ -z $assets || -d $assets ]] || fail "KUBEBUILDER_ASSETS is set, but is no folder"
warn_of_mixed_versions
build_etcd
build_kwok
build_kubernetes
build_tidb_operator
