# The same set-up as on a bare Debian: Go from its official archive, everything
# else by scripts/setup.sh with Debian's packages.
#
#   docker build -t memopd .
#   docker run --rm -it -v "$PWD/runs:/memopd/runs" memopd train --variant memopd
#   docker run --rm -it -v "$PWD/runs:/memopd/runs" memopd eval --horizon q16
#   docker run --rm -it --entrypoint scripts/test memopd

FROM golang:1.26-bookworm AS go

FROM debian:bookworm-slim
COPY --from=go /usr/local/go /usr/local/go
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /memopd
# Packages and modules come before the sources, so that a changed source does
# not fetch them again.
COPY go.mod go.sum ./
COPY scripts/setup.sh scripts/setup.sh
COPY scripts/lib scripts/lib
RUN scripts/setup.sh && rm -rf /var/lib/apt/lists/* && /usr/local/go/bin/go mod download
COPY . .
RUN scripts/bench --help
ENTRYPOINT ["/memopd/scripts/bench"]
