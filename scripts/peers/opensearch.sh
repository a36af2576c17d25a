#!/usr/bin/env bash
# Fetches OpenSearch from Maven Central and tests the client against a node of it:
#
#   scripts/peers/opensearch.sh [LIB]
#
# LIB is where the jars are kept (45 MB), .setup/opensearch by default. Needs Maven and Java 17.
set -euo pipefail
cd "$(dirname "$0")/../.."
lib=$(realpath -m "${1:-.setup/opensearch}")
[ -d "$lib" ] || mvn -q -B -f scripts/peers/opensearch/pom.xml dependency:copy-dependencies -DoutputDirectory="$lib"
OPENSEARCH_LIB=$lib go test -count 1 -v -run TestRealCluster ./retriever/client
