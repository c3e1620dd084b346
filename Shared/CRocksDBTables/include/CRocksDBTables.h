#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Reads a table of RocksDB to its end and compares every block in it with its checksum: rows, the index of its blocks,
/// its filter, its range tombstones, its properties. Nothing stays in a cache.
///
/// Returns how many rows and tombstones it holds. Where something is not as it was written, or cannot be read, `*error` is
/// set, in RocksDB's words, as by the functions of its C interface: to be freed with `rocksdb_free`.
uint64_t hato_check_table(const char *path, char **error);

#ifdef __cplusplus
}
#endif
