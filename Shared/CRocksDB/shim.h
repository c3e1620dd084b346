#pragma once
#include <rocksdb/c.h>

// RocksDB's C interface takes keys and values as `const char*`; Swift's bytes are `const void*`, and without an address
// when there are none. These do nothing but pass them on.

static inline const char *hato_bytes(const void *bytes) { return bytes ? (const char *)bytes : ""; }

static inline void hato_batch_put(rocksdb_writebatch_t *batch, rocksdb_column_family_handle_t *family,
                                  const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    rocksdb_writebatch_put_cf(batch, family, hato_bytes(key), key_bytes, hato_bytes(value), value_bytes);
}

static inline void hato_batch_delete(rocksdb_writebatch_t *batch, rocksdb_column_family_handle_t *family,
                                     const void *key, size_t key_bytes) {
    rocksdb_writebatch_delete_cf(batch, family, hato_bytes(key), key_bytes);
}

static inline void hato_batch_delete_range(rocksdb_writebatch_t *batch, rocksdb_column_family_handle_t *family,
                                           const void *lower, size_t lower_bytes, const void *upper, size_t upper_bytes) {
    rocksdb_writebatch_delete_range_cf(batch, family, hato_bytes(lower), lower_bytes, hato_bytes(upper), upper_bytes);
}

static inline void hato_batch_put_log_data(rocksdb_writebatch_t *batch, const void *bytes, size_t count) {
    rocksdb_writebatch_put_log_data(batch, hato_bytes(bytes), count);
}

static inline void hato_file_put(rocksdb_sstfilewriter_t *file, const void *key, size_t key_bytes,
                                 const void *value, size_t value_bytes, char **error) {
    rocksdb_sstfilewriter_put(file, hato_bytes(key), key_bytes, hato_bytes(value), value_bytes, error);
}

static inline void hato_file_delete(rocksdb_sstfilewriter_t *file, const void *key, size_t key_bytes, char **error) {
    rocksdb_sstfilewriter_delete(file, hato_bytes(key), key_bytes, error);
}

static inline void hato_file_delete_range(rocksdb_sstfilewriter_t *file, const void *lower, size_t lower_bytes,
                                          const void *upper, size_t upper_bytes, char **error) {
    rocksdb_sstfilewriter_delete_range(file, hato_bytes(lower), lower_bytes, hato_bytes(upper), upper_bytes, error);
}

static inline rocksdb_pinnableslice_t *hato_get(rocksdb_t *database, const rocksdb_readoptions_t *options,
                                                rocksdb_column_family_handle_t *family, const void *key, size_t key_bytes,
                                                char **error) {
    return rocksdb_get_pinned_cf(database, options, family, hato_bytes(key), key_bytes, error);
}

static inline void hato_set_bounds(rocksdb_readoptions_t *options, const void *lower, size_t lower_bytes,
                                   const void *upper, size_t upper_bytes) {
    if (lower_bytes > 0) rocksdb_readoptions_set_iterate_lower_bound(options, hato_bytes(lower), lower_bytes);
    if (upper) rocksdb_readoptions_set_iterate_upper_bound(options, hato_bytes(upper), upper_bytes);
}

static inline void hato_seek(rocksdb_iterator_t *iterator, const void *key, size_t key_bytes) {
    rocksdb_iter_seek(iterator, hato_bytes(key), key_bytes);
}

static inline void hato_seek_for_previous(rocksdb_iterator_t *iterator, const void *key, size_t key_bytes) {
    rocksdb_iter_seek_for_prev(iterator, hato_bytes(key), key_bytes);
}

static inline void hato_delete_files_in_range(rocksdb_t *database, rocksdb_column_family_handle_t *family,
                                              const void *lower, size_t lower_bytes, const void *upper, size_t upper_bytes,
                                              char **error) {
    rocksdb_delete_file_in_range_cf(database, family, hato_bytes(lower), lower_bytes, hato_bytes(upper), upper_bytes, error);
}

static inline void hato_approximate_size(rocksdb_t *database, rocksdb_column_family_handle_t *family,
                                         const void *lower, size_t lower_bytes, const void *upper, size_t upper_bytes,
                                         uint64_t *size, char **error) {
    const char *starts[1] = {hato_bytes(lower)};
    const char *limits[1] = {hato_bytes(upper)};
    rocksdb_approximate_sizes_cf(database, family, 1, starts, &lower_bytes, limits, &upper_bytes, size, error);
}
