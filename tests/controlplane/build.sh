#!/usr/bin/env bash
# build.sh: make sure that etcd, kube-apiserver, kube-controller-manager and kubectl are there for the tests.
#
# $KUBEBUILDER_ASSETS, where set, names a folder that has them. Else they are built from Go modules into
# ${XDG_CACHE_HOME:-~/.cache}/volcano-py/controlplane/bin (ten minutes the first time); nothing is done when that was done before for
# this go.mod, go.sum, script and version of go. Without go: an error where CI is set, else a word about what is left out.
# TOOLS="etcd kubectl" builds only those.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bin="${XDG_CACHE_HOME:-$HOME/.cache}/volcano-py/controlplane/bin"
tools=${TOOLS:-etcd kubectl kube-apiserver kube-controller-manager}

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	for tool in etcd kube-apiserver; do
		[ -x "$KUBEBUILDER_ASSETS/$tool" ] || { echo "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no $tool" >&2; exit 1; }
	done
	exit 0
fi
if ! command -v go >/dev/null; then
	if [ -n "${CI:-}" ]; then
		echo "go is needed to build the control plane of the tests, or KUBEBUILDER_ASSETS; CI does not do without" >&2
		exit 1
	fi
	echo "no go here: tests against a real kube-apiserver are left out (install go, or set KUBEBUILDER_ASSETS)" >&2
	exit 0
fi

version=$(go list -mod=readonly -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
# Unset, the server calls itself v0.0.0-master and clients that look at the version go astray.
stamp=""
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done

key=$(cat go.mod go.sum <(go version) | sha256sum | cut -d' ' -f1)
mkdir -p "$bin"
for tool in $tools; do
	[ "$(cat "$bin/.$tool.key" 2>/dev/null)" = "$key" ] && [ -x "$bin/$tool" ] && continue
	case $tool in
	etcd) package=go.etcd.io/etcd/server/v3 ;; # go build would name it "server"
	*) package=k8s.io/kubernetes/cmd/$tool ;;
	esac
	echo "building $tool $version (once; kept in the cache folder)"
	CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -p "$(nproc)" -trimpath -ldflags "-s -w$stamp" -o "$bin/$tool" "$package"
	echo "$key" >"$bin/.$tool.key"
done
