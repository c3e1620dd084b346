# One image per service: docker build --target auth|messages|notifier .
FROM docker.io/library/swift:6.3-bookworm AS build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends librocksdb-dev libssl-dev zlib1g-dev libjemalloc-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# ROCKSDB=own: RocksDB without assertions, built in some 40 minutes; scripts/build-rocksdb says what it is good for.
ARG ROCKSDB=debian
COPY scripts/build-rocksdb scripts/
RUN if [ "$ROCKSDB" = own ]; then \
      apt-get update -qq && apt-get install -y -qq --no-install-recommends dpkg-dev g++ \
      && rm -rf /var/lib/apt/lists/* && scripts/build-rocksdb; \
    fi
COPY Package.swift ./
COPY Shared Shared
COPY Services Services
COPY Tests Tests
COPY scripts scripts
# The Swift runtime and RocksDB go into the binaries: the final images need neither, and a post costs less.
RUN export PKG_CONFIG_PATH="$(scripts/static-libraries)" \
 && swift build -c release --static-swift-stdlib --product hato-auth \
 && swift build -c release --static-swift-stdlib --product hato-messages \
 && swift build -c release --static-swift-stdlib --product hato-notifier \
 && mkdir /out && cp -r .build/release/hato-auth .build/release/hato-messages .build/release/hato-notifier /out/ \
 && find .build/release/ -maxdepth 1 -name '*.resources' -exec cp -r {} /out/ \;

FROM docker.io/library/debian:bookworm-slim AS service
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends libstdc++6 libjemalloc2 ca-certificates tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 hato && useradd --uid 10001 --gid hato --no-create-home --shell /usr/sbin/nologin hato \
 && install -d -m 1777 /data
USER 10001:10001
VOLUME /data
STOPSIGNAL SIGTERM

# Each image runs its binary once: one that lacks a library is not built.
FROM service AS auth
COPY --from=build /out/hato-auth /usr/local/bin/
RUN hato-auth --help >/dev/null
EXPOSE 7701
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["hato-auth", "health", "--server", "127.0.0.1:7701"]
ENTRYPOINT ["hato-auth"]
CMD ["serve", "--data", "/data", "--host", "0.0.0.0"]

FROM service AS messages
COPY --from=build /out/hato-messages /usr/local/bin/
RUN hato-messages --help >/dev/null
EXPOSE 7702
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["hato-messages", "health", "--server", "127.0.0.1:7702"]
ENTRYPOINT ["hato-messages"]
CMD ["serve", "--data", "/data", "--host", "0.0.0.0", "--auth", "auth:7701"]

FROM service AS notifier
COPY --from=build /out/hato-notifier /usr/local/bin/
RUN hato-notifier --help >/dev/null
EXPOSE 7703
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["hato-notifier", "health", "--server", "127.0.0.1:7703"]
ENTRYPOINT ["hato-notifier"]
CMD ["serve", "--data", "/data", "--host", "0.0.0.0", "--auth", "auth:7701", "--messages", "messages:7702"]
