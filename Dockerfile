# One image per service: docker build --target auth|messages|notifier|gateway . They share the stage `build`, which
# compiles all four: build one first, and the others take it from the cache (make images).
FROM docker.io/library/swift:6.3-bookworm AS build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends binutils libargon2-dev libcrypt-dev librocksdb-dev libssl-dev \
    zlib1g-dev libjemalloc-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# ROCKSDB=own: RocksDB without assertions, built in some 40 minutes; scripts/build-rocksdb has the reasons.
ARG ROCKSDB=debian
COPY scripts/build-rocksdb scripts/
RUN if [ "$ROCKSDB" = own ]; then \
      apt-get update -qq && apt-get install -y -qq --no-install-recommends dpkg-dev g++ \
      && rm -rf /var/lib/apt/lists/* && scripts/build-rocksdb; \
    fi
# The dependencies, in a layer of their own: they are compiled again only when Package.swift changes. The layer has an
# archive, because layers keep times in whole seconds: built files would look older or newer than the build expects.
COPY Package.swift ./
RUN mkdir dependencies && touch dependencies/main.swift \
 && HATO_TARGETS=dependencies swift build -c release --static-swift-stdlib --product dependencies \
 && rm -r dependencies .build/release/dependencies \
 && tar --format=posix -cf /dependencies.tar .build Package.resolved && rm -r .build
COPY scripts/static-libraries scripts/allocator scripts/
COPY Shared Shared
COPY Services Services
# The Swift runtime and RocksDB go into the binaries: the final images need neither, and a post costs less. Symbols are
# in a target of their own, `symbols`: no running program reads them, and they are half of a binary.
RUN tar -xf /dependencies.tar && mkdir /out /symbols \
 && export HATO_TARGETS=services PKG_CONFIG_PATH="$(scripts/static-libraries)" \
      HATO_ALLOCATOR="$(scripts/allocator)" \
 && for product in hato-auth hato-messages hato-notifier hato-gateway; do \
      swift build -c release --static-swift-stdlib -Xlinker --build-id --product $product \
      && objcopy --only-keep-debug .build/release/$product /symbols/$product.debug \
      && strip --strip-all -o /out/$product .build/release/$product \
      && (cd /symbols && objcopy --add-gnu-debuglink=$product.debug /out/$product) || exit 1; \
    done

# For gdb and perf: docker build --target symbols --output symbols .
FROM scratch AS symbols
COPY --from=build /symbols /

FROM docker.io/library/debian:bookworm-slim AS program
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends libstdc++6 libjemalloc2 ca-certificates tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 hato && useradd --uid 10001 --gid hato --no-create-home --shell /usr/sbin/nologin hato
USER 10001:10001
STOPSIGNAL SIGTERM

FROM program AS service
USER root
RUN install -d -m 1777 /data
USER 10001:10001
# Any user that HATO_USER names may make a folder in the volume; the service makes its own, which only its user can
# read.
VOLUME /data

# Each image runs its binary once: an image without a needed library is not built.
FROM service AS auth
COPY --from=build /out/hato-auth /usr/local/bin/
RUN hato-auth --help >/dev/null
EXPOSE 7701
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["hato-auth", "health", "--server", "127.0.0.1:7701"]
ENTRYPOINT ["hato-auth"]
CMD ["serve", "--data", "/data/auth", "--host", "0.0.0.0"]

FROM service AS messages
COPY --from=build /out/hato-messages /usr/local/bin/
RUN hato-messages --help >/dev/null
EXPOSE 7702
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["hato-messages", "health", "--server", "127.0.0.1:7702"]
ENTRYPOINT ["hato-messages"]
CMD ["serve", "--data", "/data/messages", "--host", "0.0.0.0", "--auth", "auth:7701"]

FROM service AS notifier
COPY --from=build /out/hato-notifier /usr/local/bin/
RUN hato-notifier --help >/dev/null
EXPOSE 7703
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["hato-notifier", "health", "--server", "127.0.0.1:7703"]
ENTRYPOINT ["hato-notifier"]
CMD ["serve", "--data", "/data/notifier", "--host", "0.0.0.0", "--auth", "auth:7701", "--messages", "messages:7702"]

# It has no data.
FROM program AS gateway
COPY --from=build /out/hato-gateway /usr/local/bin/
RUN hato-gateway --help >/dev/null
EXPOSE 7700
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["hato-gateway", "health", "--server", "127.0.0.1:7700"]
ENV HATO_GATEWAY_AUTH=auth:7701 HATO_GATEWAY_MESSAGES=messages:7702 HATO_GATEWAY_NOTIFIER=notifier:7703
ENTRYPOINT ["hato-gateway"]
CMD ["serve", "--host", "0.0.0.0"]
